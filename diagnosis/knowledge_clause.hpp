#pragma once

#include <optional>
#include <string_view>

#include "actors/runtime/config.hpp"
#include "diagnosis/knowledge.hpp"

namespace infernex::diagnosis {

/// One condition of a rule; mistakes are reported to its section.
clause read_clause(config::section& at);

/// `card_drop` -> CardDrop.
std::optional<fb::HwEventKind> find_event_kind(std::string_view word);

/// A duration of up to 30 days.
void read_millis(config::section& at, std::string_view key, millis& into);

}  // namespace infernex::diagnosis
