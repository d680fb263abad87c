#include "tests/engine/train/layouts.h"

namespace trireme::train {
namespace {

TEST(ManyRanks, EveryLayoutHasTheBitsOfTheSerialExecutor) {
  for (const std::string& model : models::names()) {
    for (int stages = 1; stages <= 4; ++stages) {
      for (const auto& [replicas, lanes] : kReplicas) {
        for (const char* schedule : kSchedules) {
          expect_bits_of_serial_executor({model, stages, replicas, lanes, schedule});
        }
      }
    }
  }
}

TEST(ManyRanks, SeveralStagesOnARankHaveTheBitsOfTheSerialExecutor) {
  for (const std::string& model : models::names()) {
    for (int ranks = 1; ranks <= 3; ++ranks) {
      for (const int each : {2, 3}) {
        for (const auto& [replicas, lanes] : kReplicas) {
          if (replicas > 2) continue;
          for (const std::string& schedule : schedule::schedule_names(each)) {
            expect_bits_of_serial_executor({model, ranks * each, replicas, lanes, schedule, each});
          }
        }
      }
    }
  }
}

// Layouts of tests stopped at 4 stages.
TEST(ManyRanks, LongPipelinesHaveTheBitsOfTheSerialExecutor) {
  for (const char* schedule : kSchedules) {
    for (const Layout& layout :
         {Layout{.model = "transformer", .stages = 8, .schedule = schedule},
          Layout{.model = "resnet", .stages = 6, .replicas = 2, .schedule = schedule}}) {
      expect_bits_of_serial_executor(layout);
    }
  }
}

}  // namespace
}  // namespace trireme::train
