#include "trireme/plan/analytic/machine.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>

#include "trireme/error.h"

namespace trireme::analytic {
namespace {

constexpr double kGbit = 1e9 / 8;

/// What is in the text, lower case, and the machine that it means. The first that is found.
struct Word {
  std::string_view text;
  std::string_view machine;
};

constexpr std::array kWords = {
    Word{"gb300", "gb300_nvl72"},
    Word{"gb200", "gb200_nvl72"},
    Word{"b200", "dgx_b200"},
    Word{"h200", "dgx_h200"},
    Word{"h800", "h800"},
    Word{"h100-96", "grand_teton"},
    Word{"hbm2e", "grand_teton"},
    Word{"p5", "p5"},
    Word{"h100", "dgx_h100"},
    Word{"p4de", "p4de"},
    Word{"p4d", "p4d"},
    Word{"a800", "a800"},
    Word{"a100-40", "dgx_a100_40"},
    Word{"a100_40", "dgx_a100_40"},
    Word{"a100 40", "dgx_a100_40"},
    Word{"a100-sxm4-40", "dgx_a100_40"},
    Word{"a100", "dgx_a100"},
    Word{"p3dn", "p3dn"},
    Word{"dgx-2", "dgx_2"},
    Word{"dgx2", "dgx_2"},
    Word{"jean zay", "jean_zay"},
    Word{"v100", "p3dn"},
    Word{"p40", "p40"},
    Word{"cpu", "cpu"},
    Word{"epyc", "cpu"},
    Word{"xeon", "cpu"},
};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

[[noreturn]] void fail_unknown(const std::string& problem) {
  std::string names;
  for (const Machine& known : machines()) names += (names.empty() ? "" : ", ") + known.name;
  throw Error(ErrorKind::kInvalidArgument, problem + "; known are: " + names);
}

/// Reads what the text says of hosts and network.
void read_host(const std::string& text, Machine& machine) {
  const double share = machine.network_share();
  std::smatch match;
  static const std::regex kPerHost(R"((\d+)\s*(?:gpus?\s*)?(?:/|per )\s*(?:node|host))");
  static const std::regex kNodesOf(R"(nodes\s*x\s*(\d+))");
  if (std::regex_search(text, match, kPerHost) || std::regex_search(text, match, kNodesOf)) {
    const int count = std::stoi(match[1].str().substr(0, 4));
    if (count > 0) machine.devices_per_host = count;
    machine.network_bytes_per_s = share * machine.devices_per_host;
  }
  static const std::regex kCards(R"((\d+)\s*x\s*(\d+)\s*gb/s)");
  static const std::regex kPerDevice(R"((\d+)\s*gb/s per gpu)");
  static const std::regex kPerNode(R"((\d+)\s*gb/s (?:inter-node|per (?:node|host)))");
  const auto number = [&](int i) { return std::stod(match[i].str().substr(0, 6)); };
  if (std::regex_search(text, match, kCards)) {
    machine.network_bytes_per_s = number(1) * number(2) * kGbit;
  } else if (std::regex_search(text, match, kPerDevice)) {
    machine.network_bytes_per_s = number(1) * machine.devices_per_host * kGbit;
  } else if (std::regex_search(text, match, kPerNode)) {
    machine.network_bytes_per_s = number(1) * kGbit;
  }
  if (machine.network_bytes_per_s > 0) return;
  throw Error(ErrorKind::kInvalidArgument, "'" + text + "' says a network of 0 Gb/s; correct it, " +
                                               "or leave out what it says of the network");
}

}  // namespace

double Accelerator::flops(MatrixType type) const {
  switch (type) {
    case MatrixType::kF32:
      return f32_flops;
    case MatrixType::kF8:
      return f8_flops;
    case MatrixType::kBf16:
      return has_bf16 ? f16_flops : 0;
    case MatrixType::kF16:
      break;
  }
  return f16_flops;
}

std::string_view to_text(MatrixType type) {
  constexpr std::array<std::string_view, 4> kNames = {"f32", "f16", "bf16", "f8"};
  return kNames[static_cast<std::size_t>(type)];
}

void check_type(const Machine& machine, MatrixType type) {
  if (machine.accelerator.flops(type) > 0) return;
  std::string types;
  for (const MatrixType one :
       {MatrixType::kF32, MatrixType::kF16, MatrixType::kBf16, MatrixType::kF8}) {
    if (machine.accelerator.flops(one) == 0) continue;
    types += (types.empty() ? "" : ", ") + std::string(to_text(one));
  }
  throw Error(ErrorKind::kInvalidArgument, machine.accelerator.name + " has no products of " +
                                               std::string(to_text(type)) + "; give one of " +
                                               types);
}

const Machine& machine(std::string_view name) {
  const auto found = std::ranges::find(machines(), name, &Machine::name);
  if (found == machines().end()) fail_unknown("there is no machine '" + std::string(name) + "'");
  return *found;
}

Machine machine_of_text(std::string_view text) {
  const std::string words = lower(text);
  const bool is_jean_zay = words.find("jean zay") != std::string::npos;
  if (is_jean_zay && words.find("a100") != std::string::npos) return machine("jean_zay_a100");
  for (const Word& word : kWords) {
    if (words.find(word.text) == std::string::npos) continue;
    Machine result = machine(word.machine);
    const bool is_small = words.find("v100-16") != std::string::npos;
    if (is_small) result.accelerator.memory_bytes /= 2;  // There are V100s of 16 and 32 GB.
    read_host(words, result);
    return result;
  }
  fail_unknown("'" + std::string(text) + "' names no device that is known");
}

}  // namespace trireme::analytic
