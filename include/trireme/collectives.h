#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace trireme {

namespace collectives {
struct World;
}
namespace session {
struct WorldMaker;
}

/// Where a rank's waits end.
struct WorldOptions {
  std::int64_t timeout_s = 300;  ///< Of every wait for another rank: kTimeout, naming it.
};

enum class Reduction : std::uint8_t { kSum, kAverage, kMin, kMax };

/// The ranks of a run, this process among them.
///
/// A process is one of several where torchrun, mpirun, srun, `trireme launch` or `run_ranks` started
/// it (docs/environment.md); else it is a world of its own.
///
/// Collectives are called by all ranks in the same order and block; tensors are dense, on the CPU.
/// Sums have the same bits for any timing and algorithm. Where ranks differ in what they call, all get
/// the same kInvalidArgument. A lost rank is kPeerLost on all others, naming it.
///
/// Threads   one at a time.
class World {
 public:
  /// Meets the other ranks. Errors   kTimeout, kPeerLost, kIo, naming rank and address.
  explicit World(const WorldOptions& options = {});
  ~World();
  World(World&&) noexcept;
  World& operator=(World&&) noexcept;

  int rank() const;
  int size() const;

  /// In place, the same tensor on every rank afterwards.
  void all_reduce(const at::Tensor& tensor, Reduction by = Reduction::kSum);

  /// Becomes the root's.
  void broadcast(const at::Tensor& tensor, int root = 0);

  /// The tensor of every rank, all of one shape: [size(), ...shape].
  at::Tensor all_gather(const at::Tensor& tensor);

  void barrier();

  /// Leaves in good order: whoever ends without is lost to the others. Every rank calls it; the
  /// second time it does nothing.
  void shutdown();

  /// The library's own form.
  const collectives::World& value() const;

 private:
  friend struct session::WorldMaker;
  struct State;
  explicit World(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Runs `body` as each of `num_ranks` ranks. In a process that is none yet, starts this program as
/// many times, with the words of argv, and waits for them; output lines are marked with their rank.
///
/// A rank that throws takes the others with it; each names the first cause.
/// Returns   the exit code for main: 0, 1 failed, 2 what the caller can put right.
int run_ranks(int argc, const char* const* argv, int num_ranks,
              const std::function<void(World&)>& body, const WorldOptions& options = {});

}  // namespace trireme
