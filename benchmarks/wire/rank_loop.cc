#include "benchmarks/wire/rank_loop.h"

#include <fcntl.h>

#include "benchmarks/wire/mailbox.h"
#include "benchmarks/wire/measure.h"

namespace trireme::bench {

void take_orders(const std::filesystem::path& folder, Contender& contender) {
  LineReader orders(open_pipe(orders_pipe(folder, contender.rank()), O_RDONLY));
  const Descriptor answers = open_pipe(answers_pipe(folder, contender.rank()), O_WRONLY);
  Memory memory;
  for (;;) {
    const auto line = orders.read_line();
    if (line == kEnd) return;
    if (line) {
      write_line(answers, to_text(measure(contender, parse_order(*line), memory)));
    } else if (orders.has_ended()) {
      return;
    }
  }
}

}  // namespace trireme::bench
