#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/router/scheduler.hpp"
#include "actors/runtime/config.hpp"
#include "actors/runtime/file_stamp.hpp"

namespace infernex::router {

/// Reads a file of kind EndpointPickerConfig, the form in which the Gateway API Inference Extension, llm-d and
/// openFuyao configure how requests are placed. All mistakes, of form and of meaning, are problems of the document; if
/// there is none, a scheduler can be made of the result. `remarks`: sections that mean nothing here, one line each.
scheduler_spec read_picker_config(config::document& file, std::string name, std::vector<std::string>& remarks);

struct picker_config {
  /// Nothing if there are problems. Named after the file.
  std::optional<scheduler_spec> spec;
  std::vector<config::problem> mistakes;
  std::vector<std::string> remarks;
  std::optional<config::file_stamp> stamp;

  /// The mistakes as text.
  std::vector<std::string> problems() const;
};

/// A file that cannot be read is a mistake too.
picker_config load_picker_config(const std::string& file);

}  // namespace infernex::router
