#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "messages/result.hpp"

namespace infernex {

/// Any message of ours as one line of JSON, without a newline:
/// `{"message":"EngineLoad","body":{"origin":{…},…}}`. Fields with default values are shown; optional
/// numbers that are absent read `null`, other absent fields are left out. Errors: wrong_message_type,
/// malformed_message, too_large.
result<std::string> decode_to_json(std::span<const std::uint8_t> bytes);

}  // namespace infernex
