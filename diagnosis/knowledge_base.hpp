#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/runtime/config.hpp"
#include "diagnosis/knowledge.hpp"

namespace infernex::diagnosis {

/// A file of the knowledge base.
struct knowledge_file {
  std::string name;
  std::string text;
};

/// The files of diagnosis/knowledge/ as they were when this was compiled.
std::span<const std::pair<std::string_view, std::string_view>> embedded_knowledge();

struct loaded_knowledge {
  /// Null if there are problems.
  std::shared_ptr<const knowledge> base;
  /// All mistakes of all files, with file, line and column.
  std::vector<config::problem> problems;
};

/// Which file is what is told by its name: ascend_codes.yaml, nvidia_xids.yaml, nvidia_sxids.yaml, levels.yaml; every
/// other
/// `.yaml` holds rules. `overrides`: what operators change of rules (docs/diagnosis.md); an empty name means none.
loaded_knowledge load_knowledge(std::span<const knowledge_file> files, const knowledge_file& overrides = {});

/// The same from a directory (empty: what is embedded) and an overrides file (empty: none). What cannot be read is a
/// problem.
loaded_knowledge load_knowledge(const std::string& directory, const std::string& overrides_file);

// The parts, each of which takes what it can and reports the rest to its section.
void read_rules(config::section root, std::vector<rule>& into);
void read_levels(config::section root, knowledge& into);
void read_codes(config::section root, code_table& into, bool hexadecimal);
void read_overrides(config::section root, std::string_view file, std::vector<rule>& rules);
/// Of a rule or an override: severity and action.
void read_outcome(config::section& at, severity& grade, action& act);
std::optional<escalation> read_escalation(config::section& at);

}  // namespace infernex::diagnosis
