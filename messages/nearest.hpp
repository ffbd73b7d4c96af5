#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace infernex {

/// The known word nearest to `word` by edit distance, if near enough to be a slip.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace infernex
