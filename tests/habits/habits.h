#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "trireme/engine/train/batch_reader.h"

namespace trireme::habits {

/// What becomes of a habit.
enum class Outcome {
  kRecorded,  ///< At any batch size.
  kExact,     ///< At its own microbatch size alone.
  kRefused,   ///< With `words`.
  kDrifts,    ///< Recorded, since it changes too rarely; the drift check names it.
};

/// One way in which people write modules, as small as it can be.
struct Habit {
  std::string name;
  MakeWorkload make;
  Outcome outcome = Outcome::kRecorded;
  std::vector<std::string> words = {};  ///< Of a refusal: the cause, the operator, the remedy.
  bool takes_replicas = true;           ///< Else a buffer is written in the order of microbatches.
};

inline void PrintTo(const Habit& habit, std::ostream* out) { *out << habit.name; }

/// Samples of a microbatch for all of them; one has it in its code.
inline constexpr std::int64_t kMicrobatch = 2;

/// All of them, by theme.
std::vector<Habit> training_habits();  ///< Toggles, frozen parts, host state, batch sizes, losses.
std::vector<Habit> memory_habits();  ///< In-place writes, buffers, parameters of odd forms, names.
std::vector<Habit> random_habits();  ///< Random operators, dtypes, transforms.
std::vector<Habit> sequence_habits();  ///< Recurrent layers, attention, embeddings.
std::vector<Habit> layer_habits();     ///< Norms, convolutions, losses and the rest of torch::nn.

}  // namespace trireme::habits
