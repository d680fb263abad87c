#include "trireme/engine/train/training_state.h"

#include <ATen/Functions.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <torch/version.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/base/json.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/engine/train/replica_buffers.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/step_facts.h"

namespace trireme::train {
namespace {

constexpr std::string_view kParameters = "parameters/";
constexpr std::string_view kBuffers = "buffers/";
constexpr std::string_view kOptimizer = "optimizer/";
constexpr std::string_view kMachine = "machine.";
constexpr const char* kLossScale = "training/loss_scale";

std::string key_of(std::string_view kind, const std::string& name) {
  return std::string(kind) + name;
}

/// Whole rows of a parameter: those of which the state of a part is kept.
struct Rows {
  std::int64_t begin = 0;
  at::Tensor like;  ///< With their shape and strides.
};

Rows rows_of(const parameters::FlatParameter& part, const at::Tensor& whole) {
  if (part.value.numel() == whole.numel() || whole.dim() == 0) return {0, whole};
  const std::int64_t row = whole.numel() / whole.size(0);
  TRIREME_CHECK(part.begin % row == 0 && part.value.numel() % row == 0, "a shard within a row");
  return {part.begin / row, whole.narrow(0, part.begin / row, part.value.numel() / row)};
}

/// Flat state by element in the shape of the elements' rows.
at::Tensor shaped(const at::Tensor& flat, const Rows& rows) {
  const layout::Slot whole{.offset_elements = 0, .num_elements = flat.numel()};
  return parameters::slot_view(flat, whole, rows.like);
}

/// The value of a trained parameter: this rank's rows of it where nobody else has them.
void add_value(const TrainingState& state, const std::string& name,
               std::vector<checkpoint::KeyedTensor>& items) {
  const at::Tensor& whole = state.store.value(name);
  const std::string key = key_of(kParameters, name);
  if (!state.store.is_sharded(name) || whole.numel() == 0) {
    items.push_back({key, whole});
    return;
  }
  const auto part = parameters::flat_parameter(state.store, name, state.part);
  if (part.value.numel() == 0) return;
  const Rows rows = rows_of(part, whole);
  checkpoint::KeyedTensor item{key, shaped(part.value, rows), {}, true};
  if (part.value.numel() < whole.numel()) item.rows_of = {whole.sizes().vec(), rows.begin};
  items.push_back(std::move(item));
}

/// Into the memory that add_value writes from.
void restore_value(const TrainingState& state, const std::string& name,
                   checkpoint::Reader& reader) {
  const at::Tensor& whole = state.store.value(name);
  const std::string key = key_of(kParameters, name);
  if (!state.store.is_sharded(name)) return reader.read(key, whole);
  const auto part = parameters::flat_parameter(state.store, name, state.part);
  const Rows rows = rows_of(part, whole);
  reader.read_rows(key, rows.begin, shaped(part.value, rows));
}

/// What this rank has of it and nobody else; where it has all, replicas have the same, and write shares.
void add_optimizer_state(const TrainingState& state, const std::string& name,
                         std::vector<checkpoint::KeyedTensor>& items) {
  const auto found = state.optimizer.state().find(name);
  if (found == state.optimizer.state().end()) return;  // no gradient ever, or not of this part
  const at::Tensor& whole = state.store.value(name);
  const auto part = parameters::flat_parameter(state.store, name, state.part);
  const Rows rows = rows_of(part, whole);
  for (const auto& [kind, kept] : state.optimizer.kinds(part)) {
    const at::Tensor& flat = found->second.at(kind);
    const std::string key = key_of(kOptimizer, kind + "/" + name);
    if (!kept.is_by_element) {
      if (part.begin > 0) continue;  // the first part's
      items.push_back({key, flat, {}, state.part.replica.has_value()});
      continue;
    }
    checkpoint::KeyedTensor item{key, shaped(flat, rows), {}, state.part.replica.has_value()};
    if (part.value.numel() < whole.numel()) item.rows_of = {whole.sizes().vec(), rows.begin};
    items.push_back(std::move(item));
  }
}

[[noreturn]] void fail_key(const std::string& key) {
  throw Error(ErrorKind::kCorruptData,
              "the checkpoint has '" + key +
                  "', which is the state of no parameter; resume from another checkpoint");
}

/// By parameter and kind, the keys of optimizer state in a checkpoint.
std::map<std::string, std::map<std::string, std::string>> optimizer_keys(
    const checkpoint::Index& index) {
  std::map<std::string, std::map<std::string, std::string>> result;
  for (const auto& [key, tensor] : index.contents.tensors) {
    if (!key.starts_with(kOptimizer)) continue;
    const std::size_t slash = key.find('/', kOptimizer.size());
    if (slash == std::string::npos) fail_key(key);
    const std::string kind = key.substr(kOptimizer.size(), slash - kOptimizer.size());
    result[key.substr(slash + 1)][kind] = key;
  }
  return result;
}

/// Of the part's elements, or as it is where it is not by element.
at::Tensor read_state(checkpoint::Reader& reader, const std::string& key,
                      const parameters::FlatParameter& part, const at::Tensor& whole) {
  const checkpoint::TensorEntry& entry = reader.index().contents.tensors.at(key);
  if (entry.shape != whole.sizes().vec()) return reader.read(key);
  const Rows rows = rows_of(part, whole);
  at::Tensor flat = at::empty({part.value.numel()}, record::to_scalar_type(entry.dtype));
  reader.read_rows(key, rows.begin, shaped(flat, rows));
  return flat;
}

void restore_optimizer(const TrainingState& state, checkpoint::Reader& reader) {
  const auto keys = optimizer_keys(reader.index());
  for (const auto& [name, kinds] : keys) {
    if (!reader.has(key_of(kParameters, name))) fail_key(kinds.begin()->second);
  }
  for (const std::string& name : state.store.names()) {
    const auto found = keys.find(name);
    const auto part = parameters::flat_parameter(state.store, name, state.part);
    if (found == keys.end() || part.value.numel() == 0) continue;
    std::map<std::string, at::Tensor> kinds;
    for (const auto& [kind, key] : found->second) {
      kinds[kind] = read_state(reader, key, part, state.store.value(name));
    }
    state.optimizer.restore(part, std::move(kinds));
  }
}

}  // namespace

std::map<std::string, Origin> origins(const graph::Graph& graph, const layout::Plan& plan,
                                      const parameters::ParameterStore& store) {
  std::map<std::string, Origin> result;
  const auto add = [&](const auto& item, int stage) {
    Origin origin{stage, {}};
    for (const graph::Size& size : graph.values[item.value].shape)
      origin.shape.push_back(size.fixed);
    for (const std::string& alias : item.aliases) result[alias] = origin;
    result[item.name] = origin;
  };
  const auto stages = layout::stages_of_values(graph, plan);
  for (const graph::Parameter& parameter : graph.parameters) {
    const auto used = stages.find(parameter.value);
    if (store.is_trained(parameter.name)) {
      add(parameter, store.map().buckets[store.owner(parameter.name).bucket].stage);
    } else if (used != stages.end()) {
      add(parameter, *used->second.begin());
    }
  }
  for (const graph::Buffer& buffer : graph.buffers) {
    const auto stage = stages.find(buffer.value);
    if (stage != stages.end()) add(buffer, *stage->second.begin());
  }
  return result;
}

void release_frozen(const record::Recording& recording, const layout::Plan& plan,
                    const std::vector<int>& stages) {
  const auto used_by = layout::stages_of_values(recording.graph, plan);
  for (const graph::Parameter& parameter : recording.graph.parameters) {
    const auto used = used_by.find(parameter.value);
    if (recording.graph.values[parameter.value].requires_grad || used == used_by.end()) continue;
    if (layout::has_any(used->second, stages)) continue;
    at::Tensor tensor = recording.tensors[parameter.value];
    tensor.set_data(at::empty({0}, tensor.options()));
  }
}

void fill_parameters(const Model& model) {
  if (!model.fill) return;
  for (const NamedTensor& parameter : model.parameters) model.fill(parameter.tensor);
}

std::vector<checkpoint::KeyedTensor> checkpoint_items(const TrainingState& state) {
  const auto where = origins(state.recording.graph, state.plan, state.store);
  const auto is_here = [&](const std::string& name) {
    const auto origin = where.find(name);
    const int stage = origin == where.end() ? 0 : origin->second.stage;
    return std::ranges::count(state.stages, stage) != 0;
  };
  std::vector<checkpoint::KeyedTensor> items;
  for (const graph::Parameter& parameter : state.recording.graph.parameters) {
    if (!is_here(parameter.name)) continue;
    const bool is_trained = state.store.is_trained(parameter.name);
    if (is_trained) {
      add_value(state, parameter.name, items);
      add_optimizer_state(state, parameter.name, items);
    } else {
      items.push_back(
          {key_of(kParameters, parameter.name), state.recording.tensors[parameter.value].detach()});
    }
  }
  for (const graph::Buffer& buffer : state.recording.graph.buffers) {
    const at::Tensor& tensor = state.recording.tensors[buffer.value];
    if (is_here(buffer.name)) items.push_back({key_of(kBuffers, buffer.name), tensor.detach()});
  }
  const bool is_first = std::ranges::count(state.stages, 0) != 0;
  if (state.loss_scale != nullptr && state.loss_scale->is_on() && is_first) {
    items.push_back({kLossScale, state.loss_scale->state()});
  }
  return items;
}

void restore(const TrainingState& state, checkpoint::Reader& reader) {
  const at::NoGradGuard no_grad;
  const auto stages = layout::stages_of_values(state.recording.graph, state.plan);
  const auto is_elsewhere = [&](graph::ValueId value) {
    const auto used = stages.find(value);
    return used != stages.end() && !layout::has_any(used->second, state.stages);
  };
  for (const graph::Parameter& parameter : state.recording.graph.parameters) {
    if (state.store.has_value(parameter.name)) {
      restore_value(state, parameter.name, reader);
    } else if (!state.store.is_trained(parameter.name) && !is_elsewhere(parameter.value)) {
      reader.read(key_of(kParameters, parameter.name),
                  state.recording.tensors[parameter.value].detach());
    }
  }
  for (const graph::Buffer& buffer : state.recording.graph.buffers) {
    const bool is_written = buffer.policy != graph::BufferPolicy::kReadOnly;
    if (is_written && is_elsewhere(buffer.value)) continue;  // others are held by all
    reader.read(key_of(kBuffers, buffer.name), state.recording.tensors[buffer.value].detach());
  }
  restore_optimizer(state, reader);
  if (state.loss_scale != nullptr && state.loss_scale->is_on()) {
    state.loss_scale->restore(reader.read(kLossScale));
  }
}

checkpoint::Facts training_facts(const Workload& workload, const record::Recording& recorded,
                                 const layout::Plan& plan, const TrainingOptions& options) {
  checkpoint::Facts facts = facts_of(options);
  facts["graph"] = graph::graph_sha256(recorded.graph);
  const BatchLayout& batch = plan.batch;
  facts["global_batch"] = std::to_string(batch.global_batch);
  facts["microbatch"] = std::to_string(batch.microbatch);
  facts["lanes"] = std::to_string(batch.lanes);
  facts["copied_nodes"] = Json(plan.copied_nodes).dump();
  facts["samples"] = std::to_string(workload.training->num_samples());
  if (!plan.roles.empty()) {
    const int replicas = layout::train_role(plan).mesh.data;
    const bool has_written = replicas > 1 && !written_buffers(recorded.graph).empty();
    // Where their number decides bits.
    if (has_written || !schedule::keeps_bits(batch, replicas)) {
      facts["replicas"] = std::to_string(replicas);
    }
  }
  facts["data"] = data::fingerprint(*workload.training);
  facts["machine.torch"] = TORCH_VERSION;
  facts["machine.instructions"] = at::get_cpu_capability();
  return facts;
}

std::vector<std::string> check_facts(const checkpoint::Facts& saved, const checkpoint::Facts& now,
                                     const DescribeChange& describe) {
  const auto said = [](const checkpoint::Facts& facts, const std::string& name) {
    const auto found = facts.find(name);
    return found == facts.end() ? std::string("nothing") : found->second;
  };
  checkpoint::Facts all = now;
  all.insert(saved.begin(), saved.end());
  std::vector<std::string> warnings;
  std::string changes;
  for (const auto& [name, value] : all) {
    const std::string before = said(saved, name), after = said(now, name);
    if (before == after) continue;
    if (name.starts_with(kMachine)) {
      warnings.push_back(name + ": " + before + " -> " + after);
      continue;
    }
    if (name == "data" && said(saved, "seed") != said(now, "seed")) continue;
    const std::string words = describe ? describe(name) : "";
    changes += (changes.empty() ? "" : "; ") + name + ": " +
               (words.empty() ? before + " -> " + after : words);
  }
  if (changes.empty()) return warnings;
  throw Error(ErrorKind::kInvalidArgument,
              "this run would not continue the one that wrote the checkpoint: " + changes +
                  "; give the same options, or start a run of its own");
}

}  // namespace trireme::train
