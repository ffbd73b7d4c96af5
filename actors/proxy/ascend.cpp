// vllm-ascend MooncakeConnector: as NIXL; its decode engines may give a request back ("recomputed"), which the
// conversation sees in their answer.

#include "actors/proxy/pull.hpp"

namespace infernex::proxy {

/// The connector hands blocks over only for requests that ended by their length, hence the least length.
std::unique_ptr<protocol> make_ascend() { return std::make_unique<pull>(std::vector<json_edit>{{"min_tokens", "1"}}); }

}  // namespace infernex::proxy
