#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::analytic {

/// In which type matrix products run.
enum class MatrixType : std::uint8_t { kF32, kF16, kBf16, kF8 };

/// A device as its maker describes it: dense peaks, no sparsity.
struct Accelerator {
  std::string name;
  double f32_flops = 0;  ///< Matrix products of f32 as torch runs them by default, FLOP/s.
  double f16_flops = 0;  ///< Of f16, and of bf16 where it has that.
  double f8_flops = 0;   ///< Of f8; 0: it has none.
  double memory_bytes_per_s = 0;
  double memory_bytes = 0;
  int num_units = 1;  ///< Processors that share the tiles of a product (SMs, compute units, cores).
  bool has_bf16 = true;
  bool is_overlapped = false;  ///< Its software hides sums of gradients and has fused attention.
  bool has_f8_transposes =
      false;  ///< Its products of f8 take operands of any order: a weight is kept once.
  bool operator==(const Accelerator&) const = default;

  double flops(MatrixType type) const;  ///< 0: it has not this type.
};

std::string_view to_text(MatrixType type);

/// Machines of one kind: devices of a host, and what joins them. Bytes per second are of one
/// direction.
struct Machine {
  std::string name;
  Accelerator accelerator;
  int devices_per_host = 8;
  double link_bytes_per_s = 0;     ///< Of a device to the others of its host.
  double network_bytes_per_s = 0;  ///< Of a host's cards to other hosts, all together.
  bool operator==(const Machine&) const = default;

  /// A device's part of its host's cards.
  double network_share() const { return network_bytes_per_s / devices_per_host; }
};

/// The machines known by name, with the source of each number: p3dn, p4d, p5, ...
const std::vector<Machine>& machines();

/// One of them. kInvalidArgument, listing them, where there is no such one.
const Machine& machine(std::string_view name);

/// kInvalidArgument, naming what it has, where its devices do not multiply matrices of this type.
void check_type(const Machine& machine, MatrixType type);

/// What a published table calls its devices: "A100-80GB SXM (Selene, DGX A100, 8x200Gb/s IB)". The
/// host is the usual one of the device; devices per host and the network are read from the text
/// where it says them (`4/node`, `16 GPUs per host`, `8x200Gb/s`, `800Gb/s inter-node`, `400Gb/s per GPU`).
///
/// Errors   kInvalidArgument where no device is recognised, naming the known ones; where the network has no speed.
Machine machine_of_text(std::string_view text);

}  // namespace trireme::analytic
