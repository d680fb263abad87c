#include "benchmarks/kernels/dropout_checks.h"

namespace trireme::kernels::bench {

double product(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

void add_statistics(const std::string& name, std::span<const float> dropped,
                    std::span<const float> plain, Tensors& outputs) {
  const double size = product(plain, plain), both = product(dropped, plain);
  outputs.add<double>(name + "_slope", {1})[0] = both / size;
  outputs.add<double>(name + "_noise", {1})[0] =
      (product(dropped, dropped) - 2 * both + size) / size;
}

void add_identity(const std::string& name, double left, double right, Tensors& outputs) {
  outputs.add<double>(name, {1})[0] = left / right;
}

}  // namespace trireme::kernels::bench
