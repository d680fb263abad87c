#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace trireme {

class Error;

namespace collectives {
struct World;
}
namespace session {
struct WorldMaker;
}

struct WorldOptions {
  std::int64_t timeout_s =
      300;  ///< Seconds of every wait for another rank; then kTimeout, naming it.
};

enum class Reduction : std::uint8_t { kSum, kAverage, kMin, kMax };

/// The ranks of a run, this process among them.
///
/// A process is one of several where torchrun, mpirun, srun, `trireme launch` or `run_ranks` started
/// it (docs/environment.md); else it is a world of its own.
///
/// Collectives are called by all ranks in the same order and block; tensors are dense, on the CPU.
/// Sums have the same bits for any timing and algorithm, by rank in a balanced tree.
///
/// Errors   where ranks differ in kind, dtype or number of elements, all get the same kInvalidArgument.
///          A tensor that is not dense or not on the CPU is kInvalidArgument on that rank alone; the
///          others wait for it until the timeout. A lost rank is kPeerLost on all others, naming it.
/// Cost     microseconds within a host, where memory is shared; bytes over bandwidth for large ones.
/// Threads  one at a time.
class World {
 public:
  /// Meets the other ranks. Errors   kTimeout, kPeerLost, kIo, naming rank and address.
  explicit World(const WorldOptions& options = {});
  ~World();
  World(World&&) noexcept;
  World& operator=(World&&) noexcept;

  int rank() const;
  int size() const;

  /// In place: on every rank the reduction over ranks of its elements. Of all dtypes but bool.
  void all_reduce(const at::Tensor& tensor, Reduction by = Reduction::kSum);

  /// Becomes the root's.
  void broadcast(const at::Tensor& tensor, int root = 0);

  /// The tensor of every rank, all of one dtype and shape: [size(), ...shape]. kCorruptData, on all
  /// ranks, naming those whose shape differs.
  at::Tensor all_gather(const at::Tensor& tensor);

  void barrier();

  /// Tells the other ranks that this one cannot go on, and why: their next call, and the one they wait in,
  /// throws that error. Returns at once.
  void fail(const Error& error);

  /// Leaves in good order, after sessions are gone: whoever ends without is lost to the others. Every
  /// rank calls it; the second time it does nothing.
  void shutdown();

  /// The library's own form.
  const collectives::World& value() const;

 private:
  friend struct session::WorldMaker;
  struct State;
  explicit World(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Whether a launcher has started this process as one of several ranks (World). kInvalidArgument where its
/// variables contradict each other.
bool is_rank();

/// Runs `body` as each of `num_ranks` ranks. In a process that is none yet, starts this program as
/// many times, with the words of argv, and waits for them; output lines are marked with their rank.
///
/// A rank that throws takes the others with it; each names the first cause.
/// Returns   the exit code for main: 0, 1 failed, 2 what the caller can put right.
int run_ranks(int argc, const char* const* argv, int num_ranks,
              const std::function<void(World&)>& body, const WorldOptions& options = {});

}  // namespace trireme
