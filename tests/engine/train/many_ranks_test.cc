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

/// Recompute, offload, shared state and parameters, and precision, together and apart.
std::vector<Layout> with_all_options(const Layout& layout) {
  std::vector<Layout> result;
  for (const bool recomputes : {false, true}) {
    for (const int shards : {0, 1, 2}) {
      if (shards > 0 && layout.replicas == 1) continue;
      for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
        for (const bool offloads : {false, true}) {
          Layout one = layout;
          one.recomputes = recomputes;
          one.offloads = offloads;
          one.shards_state = shards == 1;
          one.shards_parameters = shards == 2;
          one.precision = precision;
          result.push_back(one);
        }
      }
    }
  }
  return result;
}

void expect_bits_with_all_options(Dtype gradients) {
  for (const std::string& model : models::names()) {
    for (const int each : {1, 2}) {
      for (const std::string& schedule : schedule::schedule_names(each)) {
        for (const int replicas : {1, 2, 4}) {
          const Layout layout{.model = model,
                              .stages = 2 * each,
                              .replicas = replicas,
                              .schedule = schedule,
                              .stages_per_rank = each,
                              .gradients = gradients};
          for (const Layout& one : with_all_options(layout)) expect_bits_of_serial_executor(one);
        }
      }
    }
  }
}

TEST(ManyRanks, OptionsTogetherHaveTheBitsOfTheSerialExecutor) {
  expect_bits_with_all_options(Dtype::kF32);
}

TEST(ManyRanks, OptionsWithGradientsInBf16HaveTheBitsOfTheSerialExecutor) {
  expect_bits_with_all_options(Dtype::kBf16);
}

// All schedules, on every model.
TEST(ManyRanks, HundredStepsHaveTheBitsOfTheSerialExecutor) {
  for (const std::string& model : models::names()) {
    for (const int each : {1, 2, 3}) {
      for (const std::string& schedule : schedule::schedule_names(each)) {
        expect_bits_of_serial_executor({.model = model,
                                        .stages = 2 * each,
                                        .replicas = 2,
                                        .schedule = schedule,
                                        .stages_per_rank = each},
                                       {}, 100);
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
