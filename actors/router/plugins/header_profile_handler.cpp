#include <algorithm>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// The one profile that a request's header names; without the header the default one, or the first where there is none
/// of that name. Where that profile leaves nobody, or the header names none there is, nobody takes the request.
class header_profile final : public profile_handler {
 public:
  explicit header_profile(parameters& p) {
    p.read("headerName", header_, "the header that names a profile")
        .read("defaultProfile", otherwise_, "for requests without it");
    std::transform(header_.begin(), header_.end(), header_.begin(),
                   [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
  }
  void handle(const decision_context& context, profile_runner& profiles) override {
    using leg = profile_runner::leg;
    const auto wanted = context.request.header(header_);
    profiles.run(wanted.empty() ? without_header_ : wanted, leg::decode);
  }
  void add_headers(std::vector<header_use>& into) const override { into.push_back({header_}); }
  void know_profiles(std::vector<std::string_view> all) override {
    if (std::find(all.begin(), all.end(), otherwise_) != all.end()) without_header_ = otherwise_;
  }

 private:
  std::string header_ = "epp-profile";
  std::string otherwise_ = "decode";
  /// Empty: the first.
  std::string_view without_header_;
};

}  // namespace

plugin_type header_profile_handler() {
  return {"header-profile-handler", "the one profile that a header of the request names", "llm-d router",
          [](parameters& p) -> plugin_type::made { return std::make_unique<header_profile>(p); }};
}

}  // namespace infernex::router::plugins
