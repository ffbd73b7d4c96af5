#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "messages/registry.hpp"

namespace infernex::router {

/// Gathers decisions for those who watch, so that they travel in batches, one a model.
class decision_batch {
 public:
  /// A batch that has this many is to be sent without waiting for the tick.
  static constexpr std::size_t full = 200;

  void add(fb::RouteDecisionT&& decided) {
    auto& batch = by_model_[decided.model];
    for (auto& choice : decided.choices) batch.push_back(std::move(choice));
    size_ += decided.choices.size();
  }
  std::size_t size() const { return size_; }

  /// One message a model, none with more than `full` decisions; origins are left for the caller.
  std::vector<fb::RouteDecisionT> take() {
    std::vector<fb::RouteDecisionT> out;
    for (auto& [model, choices] : by_model_)
      for (auto& choice : choices) {
        if (out.empty() || out.back().model != model || out.back().choices.size() == full) {
          out.emplace_back();
          out.back().model = model;
        }
        out.back().choices.push_back(std::move(choice));
      }
    by_model_.clear();
    size_ = 0;
    return out;
  }

 private:
  std::map<std::string, std::vector<std::unique_ptr<fb::RouteChoiceT>>> by_model_;
  std::size_t size_ = 0;
};

}  // namespace infernex::router
