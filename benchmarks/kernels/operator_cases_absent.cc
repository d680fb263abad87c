#include "benchmarks/kernels/operator_cases.h"

namespace trireme::kernels::bench {

std::vector<CaseEntry> operator_cases() { return {}; }

}  // namespace trireme::kernels::bench
