// Which rank this process is, by the variables of whoever started it. The first that is found
// counts: one started by another (torchrun by srun, mpirun in a batch script) has set its own
// later.
//
//     TRIREME_RANK > RANK > OMPI_COMM_WORLD_RANK > PMI_RANK > SLURM_PROCID of a step
//                  > PET_NODE_RANK > JOB_COMPLETION_INDEX
//
// PMI_RANK of srun's own PMI (--mpi=pmi2) is left out: that is the step of SLURM_PROCID.

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "trireme/base/address.h"
#include "trireme/base/environment.h"
#include "trireme/error.h"

namespace trireme {
namespace {

constexpr int kMaxRanks = 1 << 20;
constexpr int kMaxPid = 1 << 22;  // of Linux

[[noreturn]] void refuse(const std::string& text) {
  throw Error(ErrorKind::kInvalidArgument, "environment variable " + text);
}

/// Least and most.
struct Range {
  int min = 0;
  int max = 0;
};

constexpr Range kPorts{1, kMaxPort};

int parse_number(const std::string& name, const std::string& text, Range range) {
  int number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status == std::errc{} && end == text.data() + text.size() && number >= range.min &&
      number <= range.max) {
    return number;
  }
  refuse(name + ": '" + text + "' is no number from " + std::to_string(range.min) + " to " +
         std::to_string(range.max));
}

/// The variables; an empty one is as good as none.
class Variables {
 public:
  explicit Variables(const VariableLookup& lookup) : lookup_(lookup) {}

  std::string text(const std::string& name) const { return lookup_(name).value_or(""); }
  bool has(const std::string& name) const { return !text(name).empty(); }

  /// The first of `names` that is set.
  std::string first(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (has(name)) return text(name);
    }
    return "";
  }

  std::string required(const std::string& name, const std::string& because) const {
    if (has(name)) return text(name);
    refuse(name + " is not set, though " + because + " is; a launcher sets both");
  }

  int number(const std::string& name, const std::string& because, Range range) const {
    return parse_number(name, required(name, because), range);
  }

  int number(const std::string& name, Range range) const { return number(name, name, range); }

 private:
  const VariableLookup& lookup_;
};

/// rank, size   names of the variables.
RankEnvironment read_place(const Variables& variables, Launcher launcher, const std::string& rank,
                           const std::string& size) {
  RankEnvironment result{.launcher = launcher,
                         .rank = variables.number(rank, {0, kMaxRanks - 1}),
                         .world_size = variables.number(size, rank, {0, kMaxRanks})};
  if (result.rank < result.world_size) return result;
  refuse(rank + " is " + std::to_string(result.rank) + ", " + size + " is " +
         std::to_string(result.world_size) + "; ranks count from 0");
}

/// Where the store is, by two variables that the launcher must have set.
void read_store(const Variables& variables, const std::string& host, const std::string& port,
                const std::string& because, RankEnvironment& ranks) {
  ranks.store_host = variables.required(host, because);
  ranks.store_port = variables.number(port, because, kPorts);
}

/// Where TRIREME_STORE says, if it is set.
bool read_given_store(const Variables& variables, RankEnvironment& ranks) {
  const std::string text = variables.text("TRIREME_STORE");
  if (text.empty()) return false;
  try {
    const Address address = parse_address(text);
    ranks.store_host = address.host;
    ranks.store_port = address.port;
  } catch (const Error& error) {
    refuse("TRIREME_STORE: " + error.message());
  }
  return true;
}

/// Under mpirun, which gives no address: as TRIREME_STORE says, or on this host.
///
/// local_size   name of the variable that holds the number of ranks on this host.
void read_store_of_mpi(const Variables& variables, const std::string& local_size,
                       const std::string& job_id, RankEnvironment& ranks) {
  ranks.job_id = job_id;
  if (read_given_store(variables, ranks)) return;
  const bool is_one_host =
      variables.has(local_size) && variables.number(local_size, {0, kMaxRanks}) == ranks.world_size;
  if (is_one_host && !job_id.empty()) return;
  refuse("TRIREME_STORE is not set: this launcher does not say where rank 0 is" +
         std::string(is_one_host ? ", nor which job this is" : " and ranks are on several hosts") +
         "; set it on all ranks to HOST:PORT with the host of rank 0 and a free port");
}

RankEnvironment read_own(const Variables& variables) {
  const std::string rank = "TRIREME_RANK";
  RankEnvironment ranks = read_place(variables, Launcher::kTrireme, rank, "TRIREME_WORLD_SIZE");
  read_store(variables, "TRIREME_STORE_HOST", "TRIREME_STORE_PORT", rank, ranks);
  ranks.launcher_pid = variables.number("TRIREME_LAUNCHER_PID", rank, {0, kMaxPid});
  return ranks;
}

void check_same_rank(const Variables& variables, const std::string& one, const std::string& other) {
  if (!variables.has(other) || variables.text(one) == variables.text(other)) return;
  refuse(one + " is " + variables.text(one) + " and " + other + " is " + variables.text(other) +
         "; two launchers have started this process: unset the variables of one");
}

/// RANK as torchrun, Kubeflow's operators and people by hand set it.
RankEnvironment read_usual(const Variables& variables) {
  check_same_rank(variables, "RANK", "OMPI_COMM_WORLD_RANK");
  RankEnvironment ranks = read_place(variables, Launcher::kOther, "RANK", "WORLD_SIZE");
  ranks.generation = variables.text("TORCHELASTIC_RESTART_COUNT");
  if (ranks.generation.empty()) ranks.generation = "0";
  ranks.job_id = variables.text("TORCHELASTIC_RUN_ID");
  if (read_given_store(variables, ranks)) return ranks;
  read_store(variables, "MASTER_ADDR", "MASTER_PORT", "RANK", ranks);
  if (variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    ranks.launcher = Launcher::kTorchrun;
  }
  return ranks;
}

RankEnvironment read_open_mpi(const Variables& variables) {
  const std::string rank = "OMPI_COMM_WORLD_RANK";
  check_same_rank(variables, rank, "PMI_RANK");
  check_same_rank(variables, rank, "PMIX_RANK");
  RankEnvironment ranks = read_place(variables, Launcher::kOpenMpi, rank, "OMPI_COMM_WORLD_SIZE");
  if (ranks.world_size == 1) return ranks;
  read_store_of_mpi(variables, "OMPI_COMM_WORLD_LOCAL_SIZE",
                    variables.first({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}), ranks);
  return ranks;
}

RankEnvironment read_mpich(const Variables& variables) {
  RankEnvironment ranks = read_place(variables, Launcher::kMpich, "PMI_RANK", "PMI_SIZE");
  if (ranks.world_size == 1) return ranks;
  read_store_of_mpi(variables, "MPI_LOCALNRANKS", variables.first({"PMI_JOBID", "PMIX_NAMESPACE"}),
                    ranks);
  return ranks;
}

/// Whether PMI_RANK is of srun and of no mpiexec: only srun knows where all ranks are.
bool is_pmi_of_slurm(const Variables& variables) {
  if (!variables.has("SLURM_PROCID") || !variables.has("SLURM_STEP_ID")) return false;
  const std::string step = variables.text("SLURM_JOB_ID") + "." + variables.text("SLURM_STEP_ID");
  return variables.text("PMI_JOBID") == step;
}

/// A port for each job step, below those that the system gives out.
int port_of_job(const std::string& job, const std::string& step) {
  constexpr int kFirst = 20'000;
  constexpr int kCount = 12'000;
  constexpr Range kIds{0, 2'000'000'000};
  return kFirst + (parse_number("SLURM_JOB_ID", job, kIds) % kCount * 31 +
                   parse_number("SLURM_STEP_ID", step, kIds) % kCount) %
                      kCount;
}

RankEnvironment read_slurm(const Variables& variables) {
  const std::string rank = "SLURM_PROCID";
  const std::string size =
      variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  RankEnvironment ranks = read_place(variables, Launcher::kSlurm, rank, size);
  if (ranks.world_size == 1) return ranks;
  const std::string step = variables.text("SLURM_STEP_ID");
  const std::string job = variables.required("SLURM_JOB_ID", rank);
  ranks.job_id = job + "." + step;
  ranks.generation = variables.text("SLURM_RESTART_COUNT");
  if (read_given_store(variables, ranks)) return ranks;
  const std::string hosts =
      variables.first({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  ranks.store_host = first_host(hosts.empty() ? variables.required("SLURM_NODELIST", rank) : hosts);
  ranks.store_port = port_of_job(job, step);
  return ranks;
}

/// A pod of a training operator that runs this program itself and not torchrun.
RankEnvironment read_operator(const Variables& variables) {
  const std::string rank = "PET_NODE_RANK";
  const std::string per_node = variables.text("PET_NPROC_PER_NODE");
  if (!per_node.empty() && per_node != "1") {
    refuse("PET_NPROC_PER_NODE is '" + per_node +
           "', but this process was started without torchrun: start it by torchrun, or ask the "
           "operator for one process per node");
  }
  RankEnvironment ranks = read_place(variables, Launcher::kKubernetes, rank, "PET_NNODES");
  ranks.job_id = variables.text("PET_RDZV_ID");
  if (ranks.world_size == 1 || read_given_store(variables, ranks)) return ranks;
  read_store(variables, "PET_MASTER_ADDR", "PET_MASTER_PORT", rank, ranks);
  return ranks;
}

RankEnvironment read_indexed_job(const Variables& variables) {
  const std::string rank = "JOB_COMPLETION_INDEX";
  RankEnvironment ranks = read_place(variables, Launcher::kKubernetes, rank, "WORLD_SIZE");
  ranks.job_id = variables.text("JOBSET_NAME");
  if (ranks.world_size == 1 || read_given_store(variables, ranks)) return ranks;
  read_store(variables, "MASTER_ADDR", "MASTER_PORT", rank, ranks);
  return ranks;
}

/// Nothing where no launcher is found.
std::optional<RankEnvironment> read_first(const Variables& variables) {
  if (variables.has("TRIREME_RANK")) return read_own(variables);
  if (variables.has("RANK")) return read_usual(variables);
  if (variables.has("OMPI_COMM_WORLD_RANK")) return read_open_mpi(variables);
  if (variables.has("PMI_RANK") && !is_pmi_of_slurm(variables)) return read_mpich(variables);
  // A batch script has a rank too, but is no step.
  if (variables.has("SLURM_PROCID") && variables.has("SLURM_STEP_ID")) return read_slurm(variables);
  if (variables.has("PET_NODE_RANK")) return read_operator(variables);
  // The index alone may be of a job that has nothing to do with ranks.
  const bool has_world = variables.has("WORLD_SIZE") || variables.has("MASTER_ADDR");
  if (variables.has("JOB_COMPLETION_INDEX") && has_world) return read_indexed_job(variables);
  return std::nullopt;
}

std::string read_provider(const Variables& variables) {
  const std::string provider = variables.text("TRIREME_OFI_PROVIDER");
  for (const char* known : {"", "efa", "verbs;ofi_rxm", "tcp;ofi_rxm"}) {
    if (provider == known) return provider;
  }
  refuse("TRIREME_OFI_PROVIDER: '" + provider + "' is none of efa, verbs;ofi_rxm and tcp;ofi_rxm");
}

/// How messages move.
void read_transport(const Variables& variables, RankEnvironment& ranks) {
  const std::string provider = read_provider(variables);
  const std::string text = variables.has("TRIREME_TRANSPORT") ? variables.text("TRIREME_TRANSPORT")
                                                              : std::string("auto");
  if (text != "auto" && text != "tcp" && text != "ofi") {
    refuse("TRIREME_TRANSPORT: '" + text + "' is none of auto, tcp and ofi");
  }
  ranks.shares_memory = text == "auto";
  if (text == "ofi" || (text == "auto" && !provider.empty())) ranks.ofi_provider = provider;
}

void check_one_of(const Variables& variables, const std::string& one, const std::string& other) {
  if (!variables.has(one) || !variables.has(other)) return;
  refuse(one + " and " + other + " are both set and say the same thing; unset one");
}

}  // namespace

TokenEnvironment read_token(const VariableLookup& lookup) {
  const Variables variables(lookup);
  check_one_of(variables, "TRIREME_TOKEN", "TRIREME_TOKEN_FILE");
  return {.text = variables.text("TRIREME_TOKEN"), .file = variables.text("TRIREME_TOKEN_FILE")};
}

RankEnvironment read_connections(const VariableLookup& lookup) {
  const Variables variables(lookup);
  RankEnvironment rank;
  read_transport(variables, rank);
  check_one_of(variables, "TRIREME_HOST", "TRIREME_INTERFACE");
  rank.host = variables.text("TRIREME_HOST");
  rank.interface = variables.text("TRIREME_INTERFACE");
  return rank;
}

std::optional<RankEnvironment> read_ranks(const VariableLookup& lookup) {
  const Variables variables(lookup);
  std::optional<RankEnvironment> ranks = read_first(variables);
  const bool is_given =
      ranks && (ranks->launcher == Launcher::kTrireme || ranks->launcher == Launcher::kOther ||
                ranks->launcher == Launcher::kTorchrun);
  if (!ranks || (ranks->world_size == 1 && !is_given)) return std::nullopt;
  const RankEnvironment connections = read_connections(lookup);
  ranks->shares_memory = connections.shares_memory;
  ranks->ofi_provider = connections.ofi_provider;
  ranks->host = connections.host;
  ranks->interface = connections.interface;
  const TokenEnvironment token = read_token(lookup);
  ranks->token = token.text;
  ranks->token_file = token.file;
  return ranks;
}

std::string first_host(const std::string& list) {
  const auto refuse_list = [&list]() {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + list + "' is no list of hosts as Slurm writes it, as node[01-04],login");
  };
  std::string host;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const std::size_t end = list.find(']', i);
    if (end == std::string::npos) refuse_list();
    const std::string ranges = list.substr(i + 1, end - i - 1);
    const std::string first = ranges.substr(0, ranges.find_first_of(",-"));
    const bool is_number = !first.empty() && std::all_of(first.begin(), first.end(), [](char c) {
      return c >= '0' && c <= '9';
    });
    if (!is_number) refuse_list();
    host += first;
    i = end;
  }
  if (host.empty() || host.find(']') != std::string::npos) refuse_list();
  return host;
}

}  // namespace trireme
