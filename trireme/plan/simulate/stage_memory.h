#pragma once

#include <cstdint>

namespace trireme::simulate {

/// A piece of memory of the stage: what a node makes here with all its views, a received value, or
/// a field of the batch that is saved.
struct MemoryPiece {
  std::int64_t bytes = 0;
  int made = 0;
  int last_use = 0;
  int first_saved = -1;  ///< -1: no node saves it.
  int first_now = -1;    ///< Likewise, of nodes of the first part alone.
  bool waits = false;    ///< A node that waits saves it.
  bool is_sent = false;
  bool is_leaf = false;  ///< Received, and held to the end: with a gradient it is.
};

/// The gradient of a value.
struct GradientUses {
  std::int64_t bytes = 0;
  int made = 0;       ///< 0 for a received value.
  int last_use = -1;  ///< Whose part is the first to come.
  bool last_hands_on = false;
  bool waits = false;    ///< A node that waits makes the value.
  bool is_late = false;  ///< Its backward is whole in the second part.
  int first_part = -1;   ///< The first use in the first part that is no view.
  /// Of a parameter that it is a view of, where the gradient of that is memory of its own.
  std::int64_t parameter_bytes = 0;
};

}  // namespace trireme::simulate
