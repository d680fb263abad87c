#include "trireme/kernels/optimizer/average.h"

#include "trireme/kernels/optimizer/elements.h"
#include "trireme/kernels/optimizer/norm_blocks.h"

namespace trireme::kernels {
namespace {

template <typename Real>
void any_average(double decay, const Real* value, Real* average, std::int64_t n,
                 const Spread& spread) {
  const auto kept = static_cast<Real>(decay), rest = static_cast<Real>(1 - decay);
  internal::for_each_norm_block(
      n, spread, [&](std::int64_t, std::int64_t begin, std::int64_t count) {
        internal::for_each_element(
            count, [=](Real v, Real& a) TRIREME_ELEMENT { a = kept * a + rest * v; }, value + begin,
            average + begin);
      });
}

}  // namespace

void move_average(double decay, const float* value, float* average, std::int64_t n,
                  const Spread& spread) {
  any_average(decay, value, average, n, spread);
}

void move_average(double decay, const double* value, double* average, std::int64_t n,
                  const Spread& spread) {
  any_average(decay, value, average, n, spread);
}

}  // namespace trireme::kernels
