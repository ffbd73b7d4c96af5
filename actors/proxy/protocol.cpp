#include "actors/proxy/protocol.hpp"

namespace infernex::proxy {

std::unique_ptr<protocol> make_protocol(fb::KvProtocol kind) {
  switch (kind) {
    case fb::KvProtocol::Nixl:
      return make_nixl();
    case fb::KvProtocol::Mooncake:
      return make_mooncake();
    case fb::KvProtocol::Ascend:
      return make_ascend();
    case fb::KvProtocol::AscendLayerwise:
      return make_ascend_layerwise();
    case fb::KvProtocol::Sglang:
      return make_sglang();
    case fb::KvProtocol::None:
      break;
  }
  return nullptr;
}

std::string_view name_of(fb::KvProtocol kind) {
  switch (kind) {
    case fb::KvProtocol::Nixl:
      return "nixl";
    case fb::KvProtocol::Mooncake:
      return "mooncake";
    case fb::KvProtocol::Ascend:
      return "ascend";
    case fb::KvProtocol::AscendLayerwise:
      return "ascend-layerwise";
    case fb::KvProtocol::Sglang:
      return "sglang";
    case fb::KvProtocol::None:
      break;
  }
  return "none";
}

}  // namespace infernex::proxy
