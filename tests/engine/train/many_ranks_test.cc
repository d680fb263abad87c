#include "tests/engine/train/layouts.h"

namespace trireme::train {
namespace {

TEST(ManyRanks, EveryLayoutHasTheBitsOfTheSerialExecutor) {
  for (const std::string& model : models::names()) {
    for (int stages = 1; stages <= 4; ++stages) {
      for (const auto& [replicas, lanes] : kReplicas) {
        for (const char* schedule : kSchedules) {
          const Layout layout{model, stages, replicas, lanes, schedule};
          expect_bits_of_serial_executor(layout);
        }
      }
    }
  }
}

}  // namespace
}  // namespace trireme::train
