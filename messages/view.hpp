#pragma once

#include <string>
#include <utility>

#include "messages/chunk.hpp"
#include "messages/registry.hpp"
#include "messages/result.hpp"

namespace infernex {

/// Largest message accepted; NATS's own default limit is 1 MiB.
inline constexpr std::size_t max_message_bytes = 1 << 20;

/// Checks a buffer against a table: size, identifier, every offset.
error verify_message(std::span<const std::uint8_t> bytes, const root_table& expected);

/// A verified FlatBuffers message together with the bytes it lies in. Copying is cheap; reading needs no
/// further check. See chunk about how long to keep one.
template <class T>
class view {
 public:
  /// Errors: wrong_message_type, malformed_message, too_large.
  static result<view> verify(chunk data);

  const T& operator*() const { return *root_; }
  const T* operator->() const { return root_; }
  const chunk& data() const { return data_; }

 private:
  view(chunk data, const T* root) : data_(std::move(data)), root_(root) {}
  chunk data_;
  const T* root_;
};

template <class T>
result<view<T>> view<T>::verify(chunk data) {
  using traits = message_traits<T>;
  const root_table expected{traits::root, {traits::identifier(), 4}, &traits::verify, {}};
  if (auto problem = verify_message(data.bytes(), expected); problem.code != errc::none) return problem;
  const T* root = flatbuffers::GetRoot<T>(data.bytes().data());
  return view(std::move(data), root);
}

/// Serialises an object-API struct (`EngineLoadT`) with its file identifier.
template <class Object>
requires requires { typename Object::TableType; }
flatbuffers::DetachedBuffer encode(const Object& object) {
  using table = typename Object::TableType;
  flatbuffers::FlatBufferBuilder builder(512);
  builder.Finish(table::Pack(builder, &object), message_traits<table>::identifier());
  return builder.Release();
}

inline std::span<const std::uint8_t> bytes_of(const flatbuffers::DetachedBuffer& buffer) {
  return {buffer.data(), buffer.size()};
}

/// Text of an optional string field; empty if absent.
inline std::string_view text(const flatbuffers::String* s) {
  return s ? std::string_view{s->c_str(), s->size()} : std::string_view{};
}

/// Elements of an optional vector of scalars; empty if absent.
template <class T>
std::span<const T> elements(const flatbuffers::Vector<T>* v) {
  return v ? std::span<const T>{v->data(), v->size()} : std::span<const T>{};
}

}  // namespace infernex
