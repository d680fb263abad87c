#include "trireme/plan/analytic/train_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "trireme/error.h"

namespace trireme::analytic {
namespace {

/// Those that put stage s on rank s mod p.
constexpr std::array<std::string_view, 3> kSchedules = {"simple", "interleaved", "zero_bubble"};

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "layout: " + problem);
}

void check_sizes(const TrainLayout& layout) {
  const std::array<std::pair<const char*, std::int64_t>, 8> fields = {{
      {"tensor", layout.tensor},
      {"pipeline", layout.pipeline},
      {"virtual_stages", layout.virtual_stages},
      {"context", layout.context},
      {"data", layout.data},
      {"microbatch", layout.microbatch},
      {"global_batch", layout.global_batch},
      {"seq_len", layout.seq_len},
  }};
  for (const auto& [field, value] : fields) {
    if (value < 1) refuse(fmt::format("{} must be at least 1, got {}", field, value));
  }
  for (const auto& [field, value] : fields) {
    if (value > kMostOfLayout) refuse(fmt::format("{} is {}, above 2^20", field, value));
  }
}

}  // namespace

void set_habits(const Machine& machine, TrainLayout& layout) {
  layout.is_overlapped = machine.accelerator.is_overlapped;
  layout.keeps_f8_once = machine.accelerator.has_f8_transposes;
  layout.has_fused_attention = machine.accelerator.is_overlapped;
  layout.has_sequence_parallel = machine.accelerator.is_overlapped && layout.tensor > 1;
}

double gradient_bytes(const TrainLayout& layout) {
  if (layout.type == MatrixType::kF16) return 2;
  if (layout.type == MatrixType::kF32) return 4;
  return layout.is_overlapped && layout.sharding == ShardingKind::kState ? 2 : 4;
}

void check(const ModelShape& shape, const TrainLayout& layout) {
  check(shape);
  check_sizes(layout);
  if (!shape.is_transformer() && layout.tensor * layout.context > 1) {
    refuse("convolutions are not split over tensor or context groups; give tensor 1, context 1");
  }
  if (shape.is_transformer() && shape.heads % layout.tensor != 0) {
    refuse(fmt::format("tensor {} does not divide the {} heads of {}; give a divisor",
                       layout.tensor, shape.heads, shape.name));
  }
  if (layout.seq_len % layout.context != 0) {
    refuse(fmt::format("context {} does not divide the {} tokens of a sample", layout.context,
                       layout.seq_len));
  }
  if (std::ranges::find(kSchedules, layout.schedule) == kSchedules.end()) {
    refuse(
        fmt::format("schedule '{}' is none of: {}", layout.schedule, fmt::join(kSchedules, ", ")));
  }
  const std::int64_t parts = layout.pipeline * layout.virtual_stages;
  // The embedding and the head may each be a stage of their own.
  const std::int64_t most_parts = shape.num_blocks() + (shape.is_transformer() ? 2 : 0);
  if (parts > most_parts) {
    refuse(fmt::format("{} stages of {} blocks; pipeline x virtual_stages is at most {}", parts,
                       shape.num_blocks(), most_parts));
  }
  if (layout.global_batch % (layout.data * layout.microbatch) != 0) {
    refuse(fmt::format("data {} x microbatch {} does not divide the batch of {}", layout.data,
                       layout.microbatch, layout.global_batch));
  }
}

std::string to_text(const TrainLayout& layout) {
  std::string text =
      fmt::format("tensor {} x pipeline {} x data {}", layout.tensor, layout.pipeline, layout.data);
  if (layout.context > 1) text += fmt::format(" x context {}", layout.context);
  if (layout.virtual_stages > 1) text += fmt::format(", {} parts a rank", layout.virtual_stages);
  return text + fmt::format(", microbatch {}", layout.microbatch);
}

}  // namespace trireme::analytic
