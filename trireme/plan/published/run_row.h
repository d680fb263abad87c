#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::published {

/// A published training run: a row of a CSV file with a head, as benchmarks/simulator/README.md describes its columns.
/// Numbers that the source does not give are 0.
struct RunRow {
  int row = 0;  ///< Of the file, the head is row 1.
  std::string source, model, gpu_type, note, recompute, precision, schedule, zero_fsdp, flops_kind;
  std::string attention;  ///< `fused` or `scores`; empty: as usual on the device.
  double gpus = 0, tp = 0, pp = 0, dp = 0, cp = 0, vp = 0;
  double microbatch = 0, global_batch = 0, seq_len = 0;
  double layers = 0, hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0;
  double tflops_per_gpu = 0, step_time_s = 0, tokens_per_s_per_gpu = 0, samples_per_s = 0;
  double mem_gb = 0;
};

/// Rows of such a text.
///
/// origin   what it is, for messages.
/// Errors   kCorruptData, naming file, row and column, what was expected and what to do: a column that is missing, a row with
///          another number of values, a value of more than 1024 bytes, one that is no finite number or negative, a run of no devices.
std::vector<RunRow> parse_runs(std::string_view text, const std::string& origin);

/// The same of a file. Errors also of read_file.
std::vector<RunRow> read_runs(const std::filesystem::path& path);

}  // namespace trireme::published
