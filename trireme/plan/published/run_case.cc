#include "trireme/plan/published/run_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <regex>
#include <string_view>
#include <utility>

#include "trireme/error.h"

namespace trireme::published {
namespace {

using analytic::ModelShape;
using analytic::RecomputeKind;
using analytic::ShardingKind;
using analytic::TrainLayout;

/// Ends the making of a case.
struct Skip : std::exception {
  Skip(std::string cause, std::string field) : reason(std::move(cause)), detail(std::move(field)) {}

  std::string reason;
  std::string detail;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::int64_t whole(double number) { return std::llround(number); }

/// The named model, or a GPT of the row's sizes where these are others.
ModelShape shape_of(const RunRow& row) {
  const ModelShape* known = analytic::model_of_text(row.model);
  const bool has_sizes = row.layers > 0 && row.hidden > 0;
  const bool fits =
      known != nullptr &&
      (!has_sizes || (known->layers == whole(row.layers) && known->hidden == whole(row.hidden)));
  ModelShape shape;
  if (fits) {
    shape = *known;
  } else if (has_sizes) {
    const double heads = row.heads > 0 ? row.heads : std::max(1.0, std::floor(row.hidden / 128));
    shape = analytic::gpt_shape(row.model, whole(row.layers), whole(row.hidden), whole(heads));
  } else {
    throw Skip{"the model's shape is not known",
               fmt::format("model '{}' without layers and hidden", row.model)};
  }
  if (row.vocab > 0) shape.vocab = (whole(row.vocab) + 127) / 128 * 128;  // Padded, as all do.
  if (row.ffn > 0) shape.ffn = whole(row.ffn);
  if (row.kv_heads > 0) shape.kv_heads = whole(row.kv_heads);
  return shape;
}

analytic::MatrixType type_of(const RunRow& row) {
  const std::string_view text = row.precision;
  if (contains(text, "8")) return analytic::MatrixType::kF8;
  if (contains(text, "bf16")) return analytic::MatrixType::kBf16;
  if (contains(text, "32")) return analytic::MatrixType::kF32;
  return analytic::MatrixType::kF16;
}

ShardingKind sharding_of(const RunRow& row) {
  const std::string_view text = row.zero_fsdp;
  if (text.empty() || text == "none" || text == "no") return ShardingKind::kNone;
  if (contains(text, "GRAD")) return ShardingKind::kGradients;
  if (contains(text, "1")) return ShardingKind::kState;
  if (contains(text, "FSDP2")) return ShardingKind::kParameters;
  if (contains(text, "2")) return ShardingKind::kGradients;
  return ShardingKind::kParameters;
}

/// The next number of parts after one that divides a rank's blocks: the source says interleaved, and
/// not how often.
std::int64_t usual_parts(std::int64_t blocks) {
  for (std::int64_t parts = 2; parts <= blocks; ++parts) {
    if (blocks % parts == 0) return parts;
  }
  return 1;
}

void set_schedule(const RunRow& row, const ModelShape& shape, TrainLayout& layout) {
  const std::string_view text = row.schedule;
  if (contains(text, "GPipe")) layout.schedule = "simple";
  if (contains(text, "ZB") || contains(text, "ZeroBubble")) layout.schedule = "zero_bubble";
  if (layout.pipeline == 1) return;
  if (row.vp > 0) {
    layout.virtual_stages = whole(row.vp);
  } else if (contains(text, "nterleaved")) {
    layout.virtual_stages = usual_parts(shape.num_blocks() / layout.pipeline);
  }
}

/// FLOPs that the source counted over those of the model: above 1.2 they hold a second forward.
bool counts_recomputation(const RunRow& row, const ModelShape& shape) {
  if (row.tflops_per_gpu == 0 || row.step_time_s == 0) return false;
  const double counted = row.tflops_per_gpu * 1e12 * row.gpus * row.step_time_s;
  const double flops = analytic::model_flops(shape, whole(row.seq_len)) * row.global_batch;
  return counted / flops > 1.2;
}

RecomputeKind recompute_of(const RunRow& row, const ModelShape& shape) {
  if (row.recompute.starts_with("full")) return RecomputeKind::kFull;
  if (row.recompute.starts_with("sel")) {
    return contains(row.zero_fsdp, "FSDP") ? RecomputeKind::kHalf : RecomputeKind::kSelective;
  }
  const bool is_said = !row.recompute.empty() && row.recompute != "not stated";
  if (!is_said && counts_recomputation(row, shape)) return RecomputeKind::kFull;
  return RecomputeKind::kNone;
}

TrainLayout layout_of(const RunRow& row, const ModelShape& shape,
                      const analytic::Machine& machine) {
  for (const auto& [name, value] : {std::pair{"tp", row.tp},
                                    {"pp", row.pp},
                                    {"global_batch", row.global_batch},
                                    {"seq_len", row.seq_len},
                                    {"microbatch", row.microbatch}}) {
    if (value == 0) throw Skip{fmt::format("no {}", name), std::string(name) + " is empty"};
  }
  TrainLayout layout;
  layout.tensor = whole(row.tp);
  layout.pipeline = whole(row.pp);
  layout.context = row.cp > 0 ? whole(row.cp) : 1;
  const std::int64_t model_ranks = layout.tensor * layout.pipeline * layout.context;
  layout.data = row.dp > 0 ? whole(row.dp) : whole(row.gpus) / model_ranks;
  if (model_ranks > whole(row.gpus) || layout.num_devices() != whole(row.gpus)) {
    throw Skip{"tp x pp x dp is not gpus",
               fmt::format("{} x {} x {} and {} gpus", row.tp, row.pp, row.dp, row.gpus)};
  }
  layout.microbatch = whole(row.microbatch);
  layout.global_batch = whole(row.global_batch);
  layout.seq_len = whole(row.seq_len);
  layout.type = type_of(row);
  if (machine.accelerator.flops(layout.type) == 0) {
    throw Skip{"the device has not this type", row.gpu_type + ": " + row.precision};
  }
  analytic::set_habits(machine, layout);
  layout.sharding = sharding_of(row);
  if (layout.is_overlapped && shape.is_transformer() && layout.sharding == ShardingKind::kNone) {
    layout.sharding = ShardingKind::kState;  // Megatron's distributed optimizer.
  }
  layout.recompute = recompute_of(row, shape);
  if (contains(row.recompute, "sequence parallel")) layout.has_sequence_parallel = true;
  const bool is_torch = contains(row.zero_fsdp, "SHARD") || contains(row.zero_fsdp, "FSDP");
  layout.is_eager = is_torch && !contains(row.note, "compile");
  layout.has_fused_attention = layout.has_fused_attention || is_torch;
  if (row.attention == "fused") layout.has_fused_attention = true;
  if (row.attention == "scores") layout.has_fused_attention = false;
  layout.has_async_steps = contains(row.note, "asynchronous steps");
  set_schedule(row, shape, layout);
  return layout;
}

double step_of(const RunRow& row, const ModelShape& shape) {
  if (row.step_time_s > 0) return row.step_time_s;
  if (row.tokens_per_s_per_gpu > 0) {
    return row.global_batch * row.seq_len / (row.tokens_per_s_per_gpu * row.gpus);
  }
  if (row.samples_per_s > 0) return row.global_batch / row.samples_per_s;
  if (row.tflops_per_gpu > 0 && row.flops_kind.starts_with("model")) {
    return analytic::model_flops(shape, whole(row.seq_len)) * row.global_batch /
           (row.tflops_per_gpu * 1e12 * row.gpus);
  }
  throw Skip{"no step time", "step_time_s, tokens and samples a second are empty"};
}

/// What the note says as `+-N%`.
double noise_of(const RunRow& row) {
  static const std::regex kPercent(R"(\+-\s*(\d{1,3})\s*%)");
  std::smatch match;
  return std::regex_search(row.note, match, kPercent) ? std::stod(match[1]) / 100 : 0;
}

RunCase case_of(const RunRow& row) {
  RunCase result;
  result.row = row.row;
  result.source = row.source;
  result.device = row.gpu_type;
  if (contains(row.note, "INCONSISTENT")) {
    throw Skip{"inconsistent in its source", row.note};
  }
  try {
    result.machine = analytic::machine_of_text(row.gpu_type);
  } catch (const Error& error) {
    throw Skip{"the device is not known", error.message()};
  }
  result.shape = shape_of(row);
  result.layout = layout_of(row, result.shape, result.machine);
  result.step_s = step_of(row, result.shape);
  result.noise = noise_of(row);
  result.memory_bytes = row.mem_gb * 1024 * 1024 * 1024;
  try {
    analytic::check(result.shape, result.layout);
  } catch (const Error& error) {
    throw Skip{"the layout cannot be", error.message()};
  }
  return result;
}

}  // namespace

std::variant<RunCase, SkippedRun> make_case(const RunRow& row) {
  try {
    return case_of(row);
  } catch (const Skip& skip) {
    return SkippedRun{row.row, skip.reason, skip.detail};
  }
}

RunCases make_cases(const std::vector<RunRow>& rows) {
  RunCases result;
  for (const RunRow& row : rows) {
    auto made = make_case(row);
    if (auto* one = std::get_if<RunCase>(&made)) {
      result.cases.push_back(std::move(*one));
    } else {
      result.skipped.push_back(std::move(std::get<SkippedRun>(made)));
    }
  }
  return result;
}

}  // namespace trireme::published
