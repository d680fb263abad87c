#pragma once

#include <span>
#include <string>

namespace trireme::launch {

/// Starts `num_ranks` processes of this program with the same command line, each told its rank, and
/// serves the store where they meet. Waits for all of them.
///
/// A rank that ends by a signal, with a failure or before its goodbye is named to the others, which
/// then end by themselves; one that has not `kGraceSeconds` after a failure is killed. Ranks die
/// with this process.
///
/// argv     the whole command line.
/// Returns  0 if all ranks returned 0, else the exit code of the first that did not, 1 for a
///          signal; 128 + n where signal n to this process ended them. Of several that are found ended, one that ended by a signal counts as first.
/// Errors   kIo where a process cannot be started.
int run_local_ranks(int num_ranks, std::span<const char* const> argv);

/// Seconds that ranks have to end after one has failed.
inline constexpr int kGraceSeconds = 5;

}  // namespace trireme::launch
