#include <cmath>

#include "trireme/plan/analytic/machine.h"

// Every number is its maker's: NVIDIA's data sheets of V100 (2020), A100 (2021), H100 (2023), H200, GB200 (2024), GB300 (2025), Tesla P40; AWS's pages of p3dn,
// p4d, p4de, p5 (network of an instance); DGX user guides (cards of a host). NVLink is given as half of the bidirectional figure.

namespace trireme::analytic {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr double kCardBit = 1e9 / 8;
constexpr double kGibibyte = 1024.0 * 1024 * 1024;

Accelerator v100() {
  return {.name = "V100-32",
          .f32_flops = 15.7 * kTera,
          .f16_flops = 125 * kTera,
          .memory_bytes_per_s = 900 * kGiga,
          .memory_bytes = 32 * kGibibyte,
          .num_units = 80,
          .has_bf16 = false};
}

/// Faster clocks at 350 W.
Accelerator v100_of_dgx_2() {
  Accelerator device = v100();
  device.name = "V100-SXM3";
  return device;
}

Accelerator a100(double gigabytes) {
  return {.name = gigabytes > 40 ? "A100-80" : "A100-40",
          .f32_flops = 19.5 * kTera,
          .f16_flops = 312 * kTera,
          .memory_bytes_per_s = (gigabytes > 40 ? 2039 : 1555) * kGiga,
          .memory_bytes = gigabytes * kGibibyte,
          .num_units = 108};
}

/// bandwidth   GB/s: 3350 of HBM3, 4800 of H200, 2400 of the HBM2e of the 96 GB parts.
Accelerator h100(const char* name, double gigabytes, double bandwidth) {
  return {.name = name,
          .f32_flops = 67 * kTera,
          .f16_flops = 989.5 * kTera,
          .f8_flops = 1979 * kTera,
          .memory_bytes_per_s = bandwidth * kGiga,
          .memory_bytes = gigabytes * kGibibyte,
          .num_units = 132,
          .is_overlapped = true};
}

/// The same at another part of its power, which goes with the third power of the clock.
Accelerator at_power(Accelerator device, double part) {
  const double clock = std::cbrt(part);
  device.f32_flops *= clock;
  device.f16_flops *= clock;
  device.f8_flops *= clock;
  return device;
}

/// Parts of 96 GB HBM2e at 500 W instead of 700 W (torchtitan's benchmarks).
Accelerator limited_h100() { return at_power(h100("H100-96", 96, 2400), 500.0 / 700); }

/// Hopper multiplies f8 with both operands' rows along the sum; Blackwell in any order (NVIDIA's Transformer Engine, FP8 primer).
Accelerator b200(const char* name, double gigabytes, double petaflops) {
  return {.name = name,
          .f32_flops = 80 * kTera,
          .f16_flops = petaflops * 1000 * kTera,
          .f8_flops = petaflops * 2000 * kTera,
          .memory_bytes_per_s = 8000 * kGiga,
          .memory_bytes = gigabytes * kGibibyte,
          .num_units = 148,
          .is_overlapped = true,
          .has_f8_transposes = true};
}

/// 1400 W instead of GB200's 1200 W, 288 GB.
Accelerator gb300() { return at_power(b200("GB300", 278, 2.5), 1400.0 / 1200); }

Accelerator p40() {
  return {.name = "P40",
          .f32_flops = 12 * kTera,
          .f16_flops = 12 * kTera,
          .memory_bytes_per_s = 346 * kGiga,
          .memory_bytes = 24 * kGibibyte,
          .num_units = 30,
          .has_bf16 = false};
}

/// A host of 64 cores at 2.5 GHz: 32 operations of f32 a cycle (two AVX2 units), eight channels of DDR4-3200.
Accelerator cpu() {
  return {.name = "CPU-64",
          .f32_flops = 5.1 * kTera,
          .f16_flops = 5.1 * kTera,
          .memory_bytes_per_s = 205 * kGiga,
          .memory_bytes = 256 * kGibibyte,
          .num_units = 64};
}

std::vector<Machine> make_machines() {
  return {
      {"p3dn", v100(), 8, 150 * kGiga, 100 * kCardBit},
      {"dgx_2", v100_of_dgx_2(), 16, 150 * kGiga, 800 * kCardBit},
      {"jean_zay", v100(), 4, 150 * kGiga, 400 * kCardBit},  // 4 Omni-Path cards of 100 Gb/s.
      {"p4d", a100(40), 8, 300 * kGiga, 400 * kCardBit},
      {"p4de", a100(80), 8, 300 * kGiga, 400 * kCardBit},
      {"dgx_a100_40", a100(40), 8, 300 * kGiga, 1600 * kCardBit},
      {"dgx_a100", a100(80), 8, 300 * kGiga, 1600 * kCardBit},
      // "NVLink 4 inter-gpu connects, 4 OmniPath links" (bigscience train/tr11-176B-ml): 4 of the 12 links of 25 GB/s.
      {"jean_zay_a100", a100(80), 8, 100 * kGiga, 400 * kCardBit},
      {"a800", a100(80), 8, 200 * kGiga, 1600 * kCardBit},
      {"p5", h100("H100", 80, 3350), 8, 450 * kGiga, 3200 * kCardBit},
      {"dgx_h100", h100("H100", 80, 3350), 8, 450 * kGiga, 3200 * kCardBit},
      {"grand_teton", limited_h100(), 8, 450 * kGiga, 3200 * kCardBit},
      {"h800", h100("H800", 80, 3350), 8, 200 * kGiga, 3200 * kCardBit},
      {"dgx_h200", h100("H200", 141, 4800), 8, 450 * kGiga, 3200 * kCardBit},
      {"dgx_b200", b200("B200", 180, 2.25), 8, 900 * kGiga, 3200 * kCardBit},
      {"gb200_nvl72", b200("GB200", 186, 2.5), 72, 900 * kGiga, 72 * 400 * kCardBit},
      {"gb300_nvl72", gb300(), 72, 900 * kGiga, 72 * 800 * kCardBit},
      {"p40", p40(), 8, 12 * kGiga, 100 * kCardBit},
      {"cpu", cpu(), 1, 100 * kGiga, 100 * kCardBit},
  };
}

}  // namespace

const std::vector<Machine>& machines() {
  static const std::vector<Machine> kAll = make_machines();
  return kAll;
}

}  // namespace trireme::analytic
