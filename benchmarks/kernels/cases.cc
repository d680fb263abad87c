#include "benchmarks/kernels/attention_cases.h"
#include "benchmarks/kernels/case.h"
#include "benchmarks/kernels/coco_cases.h"
#include "benchmarks/kernels/detection_cases.h"
#include "benchmarks/kernels/greedy_cases.h"
#include "benchmarks/kernels/nifti_cases.h"
#include "benchmarks/kernels/normalization_cases.h"
#include "benchmarks/kernels/optimizer_cases.h"
#include "benchmarks/kernels/ranking_cases.h"
#include "benchmarks/kernels/selection_cases.h"
#include "benchmarks/kernels/speech_cases.h"
#include "benchmarks/kernels/transducer_cases.h"
#include "benchmarks/kernels/volume_cases.h"

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
