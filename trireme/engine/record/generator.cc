#include "trireme/engine/record/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <mutex>

namespace trireme::record {
namespace {

std::recursive_mutex generator_mutex;  // The generator is torch's own global.

}  // namespace

GeneratorTurn::GeneratorTurn() { generator_mutex.lock(); }
GeneratorTurn::~GeneratorTurn() { generator_mutex.unlock(); }

void seed_generator(std::uint64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

void with_seeded_generator(std::uint64_t seed, const std::function<void()>& work) {
  const GeneratorTurn turn;
  seed_generator(seed);
  work();
}

void Reseeder::before(int index, const at::RecordFunction& call) {
  const auto name = call.operator_name();
  if (!name) return;
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  if (op && op->hasTag(at::Tag::nondeterministic_seeded)) seed_generator(stream_.of_node(index));
}

void Reseeder::before_opaque(int index, const OpaqueCall&) {
  seed_generator(stream_.of_node(index));
}

}  // namespace trireme::record
