#include "actors/indexer/engine_directory.hpp"

#include <algorithm>
#include <utility>

#include "messages/view.hpp"

namespace infernex::indexer {

namespace {

engine_entry entry_of(const fb::EngineAnnounce& message) {
  engine_entry e;
  e.instance = text(message.instance());
  e.url = text(message.url());
  e.state = message.state();
  e.reason = text(message.reason());
  e.kv_health = message.kv_health();
  if (const auto size = message.block_size()) e.block_size = *size;
  if (const auto* adapters = message.adapters())
    for (const auto* one : *adapters) e.adapters.emplace_back(text(one));
  return e;
}

}  // namespace

std::optional<std::uint32_t> engine_list::model::block_size() const {
  std::optional<std::uint32_t> any;
  for (const auto& e : engines) {
    if (!e.block_size || *e.block_size == 0) continue;
    if (e.state == fb::EngineState::Ready) return e.block_size;
    if (!any) any = e.block_size;
  }
  return any;
}

const engine_entry* engine_list::model::find(std::string_view instance) const {
  const auto it = std::ranges::lower_bound(engines, instance, {}, &engine_entry::instance);
  return it != engines.end() && it->instance == instance ? &*it : nullptr;
}

const engine_list::model* engine_list::find(std::string_view name) const {
  const auto it = models.find(name);
  return it == models.end() ? nullptr : &it->second;
}

std::string_view engine_list::model_of_adapter(std::string_view adapter) const {
  for (const auto& [name, of] : models)
    for (const auto& e : of.engines)
      if (std::ranges::find(e.adapters, adapter) != e.adapters.end()) return name;
  return {};
}

engine_directory::known* engine_directory::obtain(std::string_view model, std::string_view instance) {
  const auto at = models_.find(model);
  if (at != models_.end())
    if (const auto it = at->second.find(instance); it != at->second.end()) return &it->second;
  const auto usable = [this](std::string_view name) { return !name.empty() && name.size() <= limits_.max_name_bytes; };
  if (!usable(model) || !usable(instance) || size_ >= limits_.max_engines) {
    ++refused_;
    return nullptr;
  }
  ++size_;
  return &models_[std::string(model)][std::string(instance)];
}

void engine_directory::on_announce(const fb::EngineAnnounce& message, time_point now) {
  if (!message.origin()) return;
  auto* of = obtain(text(message.model()), text(message.instance()));
  if (!of) return;
  const auto epoch = message.origin()->epoch();
  const auto sequence = message.origin()->sequence();
  if (epoch < of->epoch || (epoch == of->epoch && sequence <= of->sequence)) return;
  of->epoch = epoch;
  of->sequence = sequence;
  of->heard = now;
  auto next = entry_of(message);
  if (next == of->entry) return;
  of->entry = std::move(next);
  list_.reset();
}

void engine_directory::on_tick(time_point now) {
  if (!bus_connected_) return;
  std::size_t gone = 0;
  for (auto& [name, of_model] : models_)
    gone += std::erase_if(of_model, [&](const auto& one) { return now - one.second.heard >= limits_.forget; });
  std::erase_if(models_, [](const auto& model) { return model.second.empty(); });
  size_ -= gone;
  if (gone != 0) list_.reset();
}

void engine_directory::on_bus(bool connected, time_point now) {
  const bool back = !std::exchange(bus_connected_, connected) && connected;
  if (!back) return;
  for (auto& [name, of_model] : models_)
    for (auto& [instance, of] : of_model) of.heard = now;
}

std::shared_ptr<const engine_list> engine_directory::list() {
  if (list_) return list_;
  auto all = std::make_shared<engine_list>();
  for (const auto& [name, of_model] : models_) {
    auto& model = all->models[name];
    model.engines.reserve(of_model.size());
    for (const auto& [instance, of] : of_model) model.engines.push_back(of.entry);
  }
  return list_ = std::move(all);
}

const engine_entry* engine_directory::find(std::string_view model, std::string_view instance) const {
  const auto at = models_.find(model);
  if (at == models_.end()) return nullptr;
  const auto it = at->second.find(instance);
  return it == at->second.end() ? nullptr : &it->second.entry;
}

}  // namespace infernex::indexer
