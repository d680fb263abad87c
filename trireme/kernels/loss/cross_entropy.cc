#include "trireme/kernels/loss/cross_entropy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "trireme/error.h"
#include "trireme/kernels/isa.h"

#define TRIREME_LOOPS "trireme/kernels/loss/cross_entropy_loops.h"
#include "trireme/kernels/each_isa.h"

namespace trireme::kernels {
namespace {

/// Elements of the rows that are one piece of work.
constexpr std::int64_t kPieceElements = std::int64_t{1} << 15;

const internal::CrossEntropyLoops& cross_entropy_loops() {
  return of_isa(portable::kCrossEntropyLoops, avx2::kCrossEntropyLoops, avx512::kCrossEntropyLoops);
}

/// Calls work(begin, end) for pieces of the rows.
template <typename Work>
void for_pieces(const ClassRows& rows, const Spread& spread, const Work& work) {
  if (rows.num_rows == 0) return;
  const std::int64_t each = std::max<std::int64_t>(1, kPieceElements / rows.num_classes);
  spread((rows.num_rows + each - 1) / each, [&](std::int64_t piece) {
    work(piece * each, std::min(rows.num_rows, (piece + 1) * each));
  });
}

void check_class(const ClassRows& rows, std::int64_t row) {
  if (rows.classes[row] >= 0 && rows.classes[row] < rows.num_classes) return;
  throw Error(ErrorKind::kInvalidArgument,
              "row " + std::to_string(row) + " is of class " + std::to_string(rows.classes[row]) +
                  ", but there are " + std::to_string(rows.num_classes) + " classes from 0 on");
}

void check_rows(const ClassRows& rows) {
  if (rows.num_classes >= 1 && rows.num_rows >= 0) return;
  throw Error(ErrorKind::kInvalidArgument, "rows of logits need a class at least, got " +
                                               std::to_string(rows.num_classes) + " in " +
                                               std::to_string(rows.num_rows) + " rows");
}

}  // namespace

void cross_entropy(const ClassRows& rows, float* losses, float* log_sums, const Spread& spread) {
  check_rows(rows);
  const internal::CrossEntropyLoops& loops = cross_entropy_loops();
  for_pieces(rows, spread, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      check_class(rows, row);
      const float* x = rows.logits + row * rows.num_classes;
      log_sums[row] = loops.log_sum(x, rows.num_classes);
      losses[row] = log_sums[row] - x[rows.classes[row]];
    }
  });
}

void cross_entropy_backward(const ClassRows& rows, const float* log_sums, const float* gradients,
                            float* made, const Spread& spread) {
  check_rows(rows);
  const internal::CrossEntropyLoops& loops = cross_entropy_loops();
  for_pieces(rows, spread, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) check_class(rows, row);
    for (std::int64_t row = begin; row < end;) {
      float* out = made + row * rows.num_classes;
      const float* next =
          std::find_if(gradients + row, gradients + end, [](float g) { return g != 0; });
      if (const std::int64_t num_zero = next - (gradients + row); num_zero > 0) {
        // As many rows as there are: a long fill does not read what it writes over.
        std::memset(out, 0, static_cast<std::size_t>(num_zero * rows.num_classes) * sizeof *out);
        row += num_zero;
        continue;
      }
      loops.gradient(rows.logits + row * rows.num_classes, rows.num_classes, log_sums[row],
                     gradients[row], out);
      out[rows.classes[row]] -= gradients[row];
      ++row;
    }
  });
}

}  // namespace trireme::kernels
