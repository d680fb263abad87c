#pragma once

#include <cstdint>
#include <functional>

#include "trireme/base/random.h"
#include "trireme/engine/record/observer.h"

namespace trireme::record {

/// Torch's default CPU generator belongs to the process: while one thread holds a turn, others that
/// draw under a turn wait. A thread may take several.
class GeneratorTurn {
 public:
  GeneratorTurn();
  ~GeneratorTurn();
  GeneratorTurn(const GeneratorTurn&) = delete;
  GeneratorTurn& operator=(const GeneratorTurn&) = delete;
};

/// Runs `work` with torch's default CPU generator at the start of the stream `seed`, in a turn
/// of its own.
void with_seeded_generator(std::uint64_t seed, const std::function<void()>& work);

/// Puts torch's default CPU generator at the start of the stream `seed`.
void seed_generator(std::uint64_t seed);

/// Makes an unmodified forward draw from the streams of the nodes that it would be recorded as:
/// what a replay of its graph is compared with.
///
///     Reseeder reseeder({seed, step, microbatch});
///     { const Observation observation(reseeder); losses = model.forward(batch); }
class Reseeder : public OperatorListener {
 public:
  explicit Reseeder(NodeStream stream) : stream_(stream) {}
  void before(int index, const at::RecordFunction& call) override;
  void after(int, const at::RecordFunction&) override {}
  void before_opaque(int index, const OpaqueCall& call) override;
  void after_opaque(int, const OpaqueCall&) override {}

 private:
  NodeStream stream_;
};

}  // namespace trireme::record
