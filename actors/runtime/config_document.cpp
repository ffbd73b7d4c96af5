#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <tuple>
#include <unordered_map>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "actors/runtime/config_tree.hpp"

namespace infernex::config {

namespace {

constexpr std::size_t largest_file = std::size_t{1} << 20U;
constexpr std::size_t deepest_nesting = 32;
constexpr std::size_t most_problems = 100;

position position_of(const YAML::Mark& mark) {  // YAML::Mark counts from 0; -1 = unknown
  return {std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1};
}

}  // namespace

/// Builds the tree from parser events rather than from YAML::Node, which hides duplicate keys and follows
/// aliases (a few lines of them unfold to gigabytes).
class tree_builder : public YAML::EventHandler {
 public:
  explicit tree_builder(parsed_file& file) : file_(file) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) throw YAML::ParserException(mark, "a second document begins; one file holds one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    if (expects_key()) return take_key(mark, "null");
    add(mark, node::kind::null);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    file_.report(position_of(mark), {}, "aliases are not supported; write the value out");
    if (expects_key()) return take_key(mark, {});
    add(mark, node::kind::unusable);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& value) override {
    if (expects_key()) return take_key(mark, value);
    auto& scalar = add(mark, node::kind::scalar);
    scalar.text = value;
    scalar.quoted = tag != "?" && !tag.empty();
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, node::kind::list);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, node::kind::mapping);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  struct level {
    node* container;
    bool key_pending = false;
    bool key_repeated = false;
    std::string key = {};
    position key_at = {};
    std::unordered_map<std::string, int> seen = {};  // key -> line
  };

  bool expects_key() const {
    return !open_.empty() && open_.back().container->what == node::kind::mapping && !open_.back().key_pending;
  }

  void take_key(const YAML::Mark& mark, const std::string& key) {
    auto& top = open_.back();
    top.key_pending = true;
    top.key = key;
    top.key_at = position_of(mark);
    const auto [first, fresh] = top.seen.emplace(key, top.key_at.line);
    top.key_repeated = !fresh;
    if (!fresh)
      file_.report(top.key_at, {},
                   "the key " + quote(key) + " is given twice; first on line " + std::to_string(first->second));
  }

  node& add(const YAML::Mark& mark, node::kind what) {
    auto& fresh = file_.nodes_.emplace_back();
    fresh.what = what;
    fresh.at = position_of(mark);
    if (open_.empty()) {
      file_.root_ = &fresh;
      return fresh;
    }
    auto& top = open_.back();
    if (top.container->what == node::kind::list) {
      top.container->items.push_back(&fresh);
    } else {
      top.key_pending = false;
      if (what == node::kind::null) fresh.at = top.key_at;  // its own mark is that of whatever follows
      if (!top.key_repeated) top.container->entries.push_back({std::move(top.key), top.key_at, &fresh});
    }
    return fresh;
  }

  void open(const YAML::Mark& mark, node::kind what) {
    if (open_.size() >= deepest_nesting)
      throw YAML::ParserException(mark, "nested deeper than " + std::to_string(deepest_nesting) + " levels");
    if (expects_key()) throw YAML::ParserException(mark, "a key is a word, not a list or a mapping");
    auto& container = add(mark, what);
    open_.push_back({&container});
  }

  parsed_file& file_;
  std::vector<level> open_;
  int documents_ = 0;
};

parsed_file::parsed_file(std::string_view text, std::string file) : file_(std::move(file)) {
  std::istringstream stream{std::string(text)};
  tree_builder builder(*this);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    broken_ = true;
    report(position_of(e.mark), {}, printable(e.msg));  // it may quote the file
  }
}

void parsed_file::report(position at, std::string path, std::string message) {
  ++reported_;
  if (problems_.size() < most_problems)
    problems_.push_back({file_, at.line, at.column, std::move(path), std::move(message)});
}

void parsed_file::adopt(const problem& of_another_file) {
  ++reported_;
  if (problems_.size() < most_problems) problems_.push_back(of_another_file);
}

std::vector<problem> parsed_file::problems() const {
  auto sorted = problems_;
  // Those of this file first.
  std::stable_sort(sorted.begin(), sorted.end(), [this](const problem& a, const problem& b) {
    return std::tuple(a.file != file_, std::string_view(a.file), a.line, a.column) <
           std::tuple(b.file != file_, std::string_view(b.file), b.line, b.column);
  });
  if (reported_ > sorted.size()) {
    const auto more = std::to_string(reported_ - sorted.size());
    sorted.push_back({file_, sorted.back().line, sorted.back().column, {}, more + " more mistakes are not shown"});
  }
  return sorted;
}

std::string render(const problem& p) {
  std::string text = p.file + ':';
  if (p.line > 0) text += std::to_string(p.line) + ':' + std::to_string(p.column) + ':';
  text += ' ';
  if (!p.path.empty()) text += p.path + ": ";
  return text + p.message;
}

document::document(std::shared_ptr<parsed_file> file) : file_(std::move(file)) {}
document::document(document&&) noexcept = default;
document::~document() = default;

result<document> document::load(const std::string& file) {
  // An ifstream opens a folder without complaint, and says of no failure what it was.
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0)
    return error{errno == ENOENT || errno == ENOTDIR ? errc::not_found : errc::system_error,
                 file + ": " + std::strerror(errno)};
  if (S_ISDIR(info.st_mode)) return error{errc::not_found, file + ": is a folder, not a file"};
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return error{errc::system_error, file + ": " + std::strerror(errno)};
  std::string text(largest_file + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) return error{errc::system_error, file + ": reading failed"};
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > largest_file) return error{errc::too_large, file + ": a configuration has at most 1 MiB"};
  return parse(text, file);
}

document document::parse(std::string_view text, std::string file_name) {
  return document(std::make_shared<parsed_file>(text, std::move(file_name)));
}

std::vector<problem> document::problems() const { return file_->problems(); }

}  // namespace infernex::config
