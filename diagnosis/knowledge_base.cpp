#include "diagnosis/knowledge_base.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace infernex::diagnosis {

namespace {

constexpr std::size_t most_files = 64;

void add_problems(const config::document& from, std::vector<config::problem>& to) {
  for (auto& one : from.problems()) to.push_back(std::move(one));
}

const knowledge_file* find_file(std::span<const knowledge_file> files, std::string_view name) {
  for (const auto& one : files)
    if (std::string_view(one.name).ends_with(name)) return &one;
  return nullptr;
}

void complain(std::vector<config::problem>& to, const std::string& file, std::string message) {
  to.push_back({file, 0, 0, {}, std::move(message)});
}

/// What several files say must fit together.
void check_whole(const knowledge& base, std::vector<config::problem>& problems) {
  std::set<std::string_view> ids{"*", "ascend-code", "nvidia-xid", "nvidia-sxid"};
  for (const auto& one : base.rules)
    if (!ids.insert(one.id).second) complain(problems, "rules", "the rule '" + one.id + "' is given twice");
  for (const auto& one : base.rules)
    for (const auto& other : one.suppresses)
      if (!ids.contains(other))
        complain(problems, "rules", "rule '" + one.id + "' suppresses '" + other + "', which does not exist");
  if (base.rules.size() > 250) complain(problems, "rules", "at most 250 rules");
}

void read_table(std::span<const knowledge_file> files, std::string_view name, bool hexadecimal, code_table& into,
                std::vector<config::problem>& problems) {
  const auto* file = find_file(files, name);
  if (file == nullptr) return complain(problems, std::string(name), "missing");
  auto document = config::document::parse(file->text, file->name);
  read_codes(document.root(), into, hexadecimal);
  add_problems(document, problems);
}

void read_all_rules(std::span<const knowledge_file> files, std::vector<rule>& into,
                    std::vector<config::problem>& problems) {
  for (const auto& one : files) {
    const auto is = [&one](std::string_view name) { return std::string_view(one.name).ends_with(name); };
    if (!is(".yaml") || is("_codes.yaml") || is("_xids.yaml") || is("_sxids.yaml") || is("levels.yaml")) continue;
    auto document = config::document::parse(one.text, one.name);
    read_rules(document.root(), into);
    add_problems(document, problems);
  }
}

std::vector<knowledge_file> read_directory(const std::string& directory, std::vector<config::problem>& problems) {
  std::vector<knowledge_file> files;
  std::error_code failed;
  for (auto at = std::filesystem::directory_iterator(directory, failed); !failed && at != end(at);
       at.increment(failed)) {
    if (at->path().extension() != ".yaml" || files.size() == most_files) continue;
    std::ifstream stream(at->path(), std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    if (!stream)
      complain(problems, at->path().string(), "cannot be read");
    else
      files.push_back({at->path().string(), std::move(text).str()});
  }
  if (failed) complain(problems, directory, failed.message());
  std::ranges::sort(files, {}, &knowledge_file::name);
  return files;
}

}  // namespace

loaded_knowledge load_knowledge(std::span<const knowledge_file> files, const knowledge_file& overrides) {
  loaded_knowledge out;
  auto base = std::make_shared<knowledge>();
  // Levels first: the tables name them.
  if (const auto* file = find_file(files, "levels.yaml")) {
    auto document = config::document::parse(file->text, file->name);
    read_levels(document.root(), *base);
    add_problems(document, out.problems);
  } else {
    complain(out.problems, "levels.yaml", "missing");
  }
  read_table(files, "ascend_codes.yaml", true, base->ascend, out.problems);
  read_table(files, "nvidia_xids.yaml", false, base->xid, out.problems);
  read_table(files, "nvidia_sxids.yaml", false, base->sxid, out.problems);
  read_all_rules(files, base->rules, out.problems);
  if (!overrides.name.empty()) {
    auto document = config::document::parse(overrides.text, overrides.name);
    read_overrides(document.root(), overrides.name, base->rules);
    add_problems(document, out.problems);
  }
  check_whole(*base, out.problems);
  if (out.problems.empty()) out.base = std::move(base);
  return out;
}

loaded_knowledge load_knowledge(const std::string& directory, const std::string& overrides_file) {
  std::vector<config::problem> problems;
  std::vector<knowledge_file> files;
  if (directory.empty())
    for (const auto& [name, text] : embedded_knowledge()) files.push_back({std::string(name), std::string(text)});
  else
    files = read_directory(directory, problems);
  knowledge_file overrides;
  if (!overrides_file.empty()) {
    std::ifstream stream(overrides_file, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    if (stream)
      overrides = {overrides_file, std::move(text).str()};
    else
      complain(problems, overrides_file, "cannot be read");
  }
  auto out = load_knowledge(files, overrides);
  out.problems.insert(out.problems.begin(), problems.begin(), problems.end());
  if (!out.problems.empty()) out.base.reset();
  return out;
}

}  // namespace infernex::diagnosis
