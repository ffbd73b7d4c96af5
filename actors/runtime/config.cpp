#include "actors/runtime/config.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "actors/runtime/config_tree.hpp"

namespace infernex::config {

struct section::impl {
  std::shared_ptr<parsed_file> file;
  const node* mapping;  // null: absent, reads as empty
  position at;
  std::string path;
  std::vector<std::string> asked = {};

  std::string path_of(std::string_view key) const {
    return path.empty() ? std::string(key) : path + '.' + std::string(key);
  }

  const entry* find(std::string_view key) const {
    if (mapping == nullptr) return nullptr;
    for (const auto& e : mapping->entries)
      if (e.key == key) return &e;
    return nullptr;
  }

  const node* ask(std::string_view key) {
    if (std::find(asked.begin(), asked.end(), key) == asked.end()) asked.emplace_back(key);
    const auto* found = find(key);
    return found == nullptr ? nullptr : found->value;
  }

  void refuse(std::string_view key, const node& value, const std::string& wanted) const {
    switch (value.what) {
      case node::kind::unusable:
        return;
      case node::kind::null:
        return file->report(value.at, path_of(key), wanted + ", not nothing");
      case node::kind::list:
        return file->report(value.at, path_of(key), wanted + ", not a list");
      case node::kind::mapping:
        return file->report(value.at, path_of(key), wanted + ", not a mapping");
      case node::kind::scalar:
        return file->report(value.at, path_of(key),
                            wanted + (value.quoted ? ", not the text " : ", not ") + quote(value.text));
    }
  }

  /// Reads a scalar by `convert`; out of its range, or none at all, is refused with what is `wanted`. `quotable`:
  /// the value reads like a text ("250ms"), so people put it in quotes.
  template <class T, class Convert>
  void read(std::string_view key, T& out, T min, T max, Convert convert, const std::string& wanted,
            bool quotable = false) {
    const auto* value = ask(key);
    if (value == nullptr) return;
    if (value->what == node::kind::scalar && (quotable || !value->quoted))
      if (const auto converted = convert(value->text); converted && *converted >= min && *converted <= max) {
        out = *converted;
        return;
      }
    refuse(key, *value, wanted);
  }

  void report_unknown() const {
    if (mapping == nullptr) return;
    for (const auto& e : mapping->entries) {
      if (std::find(asked.begin(), asked.end(), e.key) != asked.end()) continue;
      std::string message = "unknown key";
      if (const auto near = nearest(e.key, asked)) message += "; did you mean '" + *near + "'?";
      file->report(e.at, path_of(printable(e.key)), std::move(message));
    }
  }
};

namespace {

std::string whole_between(std::uint64_t min, std::uint64_t max) {
  if (max == std::numeric_limits<std::uint64_t>::max()) return "a whole number of at least " + std::to_string(min);
  return "a whole number between " + std::to_string(min) + " and " + std::to_string(max);
}

template <class Integer>
void read_whole(auto& state, std::string_view key, Integer& out, Integer min, Integer max) {
  std::uint64_t wide = out;
  state.read(key, wide, std::uint64_t{min}, std::uint64_t{max}, whole_number, whole_between(min, max));
  out = static_cast<Integer>(wide);
}

}  // namespace

section::section(std::unique_ptr<impl> state) : impl_(std::move(state)) {}
section::section(section&&) noexcept = default;
section::~section() {
  if (impl_) impl_->report_unknown();
}

std::size_t section::mistakes() const { return impl_->file->reported(); }

bool section::has(std::string_view key) { return impl_->ask(key) != nullptr; }

section& section::read(std::string_view key, std::string& out) {
  const auto* value = impl_->ask(key);
  if (value == nullptr) return *this;
  if (value->what == node::kind::scalar)
    out = value->text;
  else
    impl_->refuse(key, *value, "a text");
  return *this;
}

section& section::read(std::string_view key, bool& out) {
  const auto* value = impl_->ask(key);
  if (value == nullptr) return *this;
  if (value->what == node::kind::scalar && !value->quoted && (value->text == "true" || value->text == "false"))
    out = value->text == "true";
  else
    impl_->refuse(key, *value, "true or false");
  return *this;
}

section& section::read(std::string_view key, double& out, double min, double max) {
  impl_->read(key, out, min, max, real_number, "a number between " + render_number(min) + " and " + render_number(max));
  return *this;
}

section& section::read(std::string_view key, std::uint64_t& out, std::uint64_t min, std::uint64_t max) {
  read_whole(*impl_, key, out, min, max);
  return *this;
}

section& section::read(std::string_view key, std::uint32_t& out, std::uint32_t min, std::uint32_t max) {
  read_whole(*impl_, key, out, min, max);
  return *this;
}

section& section::read(std::string_view key, std::uint16_t& out, std::uint16_t min, std::uint16_t max) {
  read_whole(*impl_, key, out, min, max);
  return *this;
}

section& section::read(std::string_view key, std::chrono::milliseconds& out, std::chrono::milliseconds min,
                       std::chrono::milliseconds max) {
  impl_->read(
      key, out, min, max, duration,
      "a duration between " + render_duration(min) + " and " + render_duration(max) + ", such as 250ms, 2s or 5m",
      true);
  return *this;
}

section& section::read_bytes(std::string_view key, std::uint64_t& out, std::uint64_t min, std::uint64_t max) {
  impl_->read(key, out, min, max, byte_size,
              "a size between " + render_bytes(min) + " and " + render_bytes(max) + ", such as 64KiB or 20MiB", true);
  return *this;
}

section& section::read(std::string_view key, std::vector<std::string>& out) {
  const auto* value = impl_->ask(key);
  if (value == nullptr) return *this;
  if (value->what != node::kind::list) {
    impl_->refuse(key, *value, "a list of texts");
    return *this;
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    const auto* item = value->items[i];
    if (item->what == node::kind::scalar)
      texts.push_back(item->text);
    else
      impl_->refuse(std::string(key) + '[' + std::to_string(i) + ']', *item, "a text");
  }
  out = std::move(texts);
  return *this;
}

section section::below(std::string_view key) {
  const auto* value = impl_->ask(key);
  const auto path = impl_->path_of(key);
  if (value == nullptr) return section(std::make_unique<impl>(impl{impl_->file, nullptr, impl_->at, path}));
  // `gateway:` with nothing below it is what commenting out all of its keys leaves.
  const bool mapping = value->what == node::kind::mapping;
  if (!mapping && value->what != node::kind::null) impl_->refuse(key, *value, "a mapping of keys");
  return section(std::make_unique<impl>(impl{impl_->file, mapping ? value : nullptr, value->at, path}));
}

std::vector<section> section::list(std::string_view key) {
  std::vector<section> sections;
  const auto* value = impl_->ask(key);
  if (value == nullptr || value->what == node::kind::null) return sections;
  if (value->what != node::kind::list) {
    impl_->refuse(key, *value, "a list of mappings");
    return sections;
  }
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    const auto* item = value->items[i];
    const auto name = std::string(key) + '[' + std::to_string(i) + ']';
    if (item->what == node::kind::mapping)
      sections.push_back(section(std::make_unique<impl>(impl{impl_->file, item, item->at, impl_->path_of(name)})));
    else
      impl_->refuse(name, *item, "a mapping of keys");
  }
  return sections;
}

void section::complain(std::string_view key, std::string message) {
  const auto* found = impl_->find(key);
  impl_->file->report(found == nullptr ? impl_->at : found->value->at, impl_->path_of(key), std::move(message));
}

section& section::require(std::string_view key) {
  if (impl_->ask(key) == nullptr && !impl_->file->broken())
    impl_->file->report(impl_->at, impl_->path_of(key), "missing");
  return *this;
}

std::optional<std::size_t> section::choose(std::string_view key, const std::vector<std::string_view>& names) {
  const auto* value = impl_->ask(key);
  if (value == nullptr) return std::nullopt;
  if (value->what == node::kind::scalar)
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == value->text) return i;
  std::string wanted = "one of ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) wanted += ", ";
    wanted += names[i];
  }
  impl_->refuse(key, *value, wanted);
  return std::nullopt;
}

section& section::read(std::string_view key, boost::json::object& out) {
  const auto* value = impl_->ask(key);
  if (value == nullptr || value->what == node::kind::null) return *this;
  if (value->what == node::kind::mapping)
    out = json_of(*value).get_object();
  else
    impl_->refuse(key, *value, "a mapping of keys");
  return *this;
}

void section::complain_below(std::string_view path, std::string message) {
  impl_->file->report(position_of(impl_->mapping, impl_->at, path), impl_->path_of(printable(path)),
                      std::move(message));
}

void section::adopt(const std::vector<problem>& of_another_file) {
  for (const auto& one : of_another_file) impl_->file->adopt(one);
}

std::string section::beside(const std::string& file) const {
  return (std::filesystem::path(impl_->file->name()).parent_path() / file).string();
}

section document::root() {
  const auto* root = file_->root();
  const bool mapping = root != nullptr && root->what == node::kind::mapping;
  if (!mapping && root != nullptr && root->what != node::kind::null)
    file_->report(root->at, {}, "a configuration is a mapping of keys");
  auto state = section::impl{file_, mapping ? root : nullptr, root == nullptr ? position{} : root->at, {}};
  return section(std::make_unique<section::impl>(std::move(state)));
}

}  // namespace infernex::config
