#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "benchmarks/wire/contender.h"
#include "benchmarks/wire/orders.h"

namespace trireme::bench {

/// The memory of a rank's measurements, kept from order to order: the ordinary kind grows to the
/// largest need, the registered kind is the contender's.
class Memory {
 public:
  Buffers buffers(const Case& one, Contender& contender);

 private:
  struct Piece {
    std::unique_ptr<std::byte, void (*)(void*)> memory{nullptr, nullptr};
    std::size_t bytes = 0;

    std::span<std::byte> at_least(std::size_t wanted);
  };

  Piece send_;
  Piece recv_;
};

/// One rank's part of an order: warm-ups, a barrier, the iterations, each timed by itself over
/// zeros, or what each adds to a sleep, or passes over the buffers; then the result of one call over
/// whole numbers is checked, and that of one over reals is hashed where all ranks have the same. Of
/// a barrier, the call is checked that ranks enter at different times.
///
/// Blocking; every rank calls it with the same order.
/// Errors   those of the contender; kResourceExhausted for memory.
Answer measure(Contender& contender, const Order& order, Memory& memory);

}  // namespace trireme::bench
