#pragma once

#include <string_view>
#include <vector>

#include <boost/json/array.hpp>

#include "actors/simulator/chat_template.hpp"
#include "actors/simulator/json_fields.hpp"

namespace infernex::simulator {

// The parts of a body that become prompts. What is wrong is left in `fields`.

std::vector<chat_message> read_messages(json_fields& fields);
template_options read_template_options(json_fields& fields);
/// A text, a list of texts, a list of ids, or a list of lists of ids.
std::vector<std::vector<token_id>> read_prompts(json_fields& fields);
/// `name`: the field to blame.
std::vector<token_id> tokens_of(json_fields& fields, std::string_view name, std::string_view text);
std::vector<token_id> tokens_of(json_fields& fields, std::string_view name, const boost::json::array& ids);

}  // namespace infernex::simulator
