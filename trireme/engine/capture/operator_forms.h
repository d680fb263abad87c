#pragma once

#include "trireme/engine/capture/tape.h"

namespace trireme::capture {

/// Turns a step that brings memory into one that writes to its `made` views, where torch has such a form of the
/// operator that runs the same kernel; is_written says so of the buffers. Other steps stay.
///
/// Returns   whether nothing is left to call: the operator only made room.
bool write_in_place(TapeStep& step, std::vector<TapeBuffer>& buffers);

}  // namespace trireme::capture
