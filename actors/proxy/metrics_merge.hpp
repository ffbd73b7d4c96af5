#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace infernex::proxy {

/// Engines' metrics pages (Prometheus text format 0.0.4) as one, under the engines' own names: samples of the same name
/// and labels are added up. Shares (`…_perc`, `…_usage`, `…_rate`) are averaged, `…_info` and timestamps keep their
/// largest value. Only names with a colon (`vllm:`, `sglang:`) are an engine's; those of its language and process are
/// left out.
class metrics_merge {
 public:
  explicit metrics_merge(std::size_t max_series = 50'000) : max_series_(max_series) {}

  void add(std::string_view page);
  std::string render() const;
  /// Samples and families left out for the bound, which holds for series and for families.
  std::size_t refused() const { return refused_; }

 private:
  struct series {
    double value = 0;
    std::size_t pages = 0;
  };
  struct family {
    std::string comments;
    std::map<std::string, series, std::less<>> samples;
  };
  std::string_view family_name(std::string_view sample_name) const;
  void note_comment(std::string_view line);

  std::size_t max_series_;
  std::size_t series_ = 0;
  std::size_t refused_ = 0;
  std::map<std::string, family, std::less<>> families_;
};

}  // namespace infernex::proxy
