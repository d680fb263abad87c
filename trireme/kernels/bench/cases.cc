#include "trireme/kernels/bench/attention_cases.h"
#include "trireme/kernels/bench/case.h"
#include "trireme/kernels/bench/coco_cases.h"
#include "trireme/kernels/bench/detection_cases.h"
#include "trireme/kernels/bench/greedy_cases.h"
#include "trireme/kernels/bench/nifti_cases.h"
#include "trireme/kernels/bench/normalization_cases.h"
#include "trireme/kernels/bench/optimizer_cases.h"
#include "trireme/kernels/bench/ranking_cases.h"
#include "trireme/kernels/bench/selection_cases.h"
#include "trireme/kernels/bench/speech_cases.h"
#include "trireme/kernels/bench/transducer_cases.h"
#include "trireme/kernels/bench/volume_cases.h"

namespace trireme::kernels::bench {

std::vector<CaseEntry> all_cases() {
  std::vector<CaseEntry> all;
  for (auto* cases : {attention_cases, coco_cases, detection_cases, greedy_cases, nifti_cases,
                      normalization_cases, optimizer_cases, ranking_cases, selection_cases,
                      speech_cases, transducer_cases, volume_cases}) {
    for (CaseEntry& entry : cases()) all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace trireme::kernels::bench
