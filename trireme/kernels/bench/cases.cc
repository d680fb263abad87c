#include "trireme/kernels/bench/case.h"
#include "trireme/kernels/bench/coco_cases.h"
#include "trireme/kernels/bench/optimizer_cases.h"

namespace trireme::kernels::bench {

std::vector<CaseEntry> all_cases() {
  std::vector<CaseEntry> all;
  for (auto* cases : {optimizer_cases, coco_cases}) {
    for (CaseEntry& entry : cases()) all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace trireme::kernels::bench
