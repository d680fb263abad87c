#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "trireme/base/isa.h"
#include "trireme/base/log.h"

namespace trireme {

/// Who started this process as one of several ranks.
enum class Launcher : std::uint8_t {
  kTrireme,     ///< `--ranks N`: serves the store.
  kTorchrun,    ///< Serves a store of its own kind at MASTER_ADDR:MASTER_PORT.
  kOther,       ///< RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: rank 0 serves the store there.
  kOpenMpi,     ///< mpirun of Open MPI
  kMpich,       ///< mpiexec of MPICH and others that speak PMI
  kSlurm,       ///< srun
  kKubernetes,  ///< A training operator (PET_*) or an indexed job
};

/// This process among the ranks of a run.
struct RankEnvironment {
  Launcher launcher = Launcher::kOther;
  int rank = 0;
  int world_size = 1;
  std::string store_host;  ///< Empty: all ranks are on this host and meet by `job_id`.
  int store_port = 0;
  std::string generation;     ///< Sets the attempts of one torchrun apart.
  std::string job_id;         ///< That the launcher gives; empty where it gives none.
  std::string host;           ///< TRIREME_HOST: where others reach this rank.
  std::string interface;      ///< TRIREME_INTERFACE: or at the address of this one.
  std::string token;          ///< TRIREME_TOKEN: who knows it may join.
  std::string token_file;     ///< TRIREME_TOKEN_FILE: holds it.
  int launcher_pid = 0;       ///< Of `kTrireme`: the process that started this one.
  bool shares_memory = true;  ///< With the ranks of its host: TRIREME_TRANSPORT is auto.

  /// TRIREME_OFI_PROVIDER: of libfabric, which moves large messages; empty: the first that there
  /// is. Nothing: tcp moves them.
  std::optional<std::string> ofi_provider;
};

/// The secret of a job: who knows it may join. Both empty: none is set.
struct TokenEnvironment {
  std::string text;  ///< TRIREME_TOKEN
  std::string file;  ///< TRIREME_TOKEN_FILE: holds it.
};

/// What the environment variables say; docs/environment.md lists them. A program reads it once, at
/// its start, and passes on what is needed. Immutable.
struct Environment {
  LogLevel log_level = LogLevel::kInfo;  ///< TRIREME_LOG
  std::optional<std::string> python;     ///< TRIREME_PYTHON: runs what is written in Python.
  std::optional<Isa> isa_limit;          ///< TRIREME_ISA: kernels run with no more than that.
  TokenEnvironment token;                ///< Also where this process is no rank.
  std::optional<RankEnvironment> ranks;  ///< TRIREME_RANK, RANK and those that go with them.
};

/// The value of a variable; nothing where it is not set.
using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// Of this process.
std::optional<std::string> process_variable(const std::string& name);

/// Errors   kInvalidArgument, naming the variable, where its value has no meaning. An empty value
///          is as good as none.
Environment read_environment();
Environment read_environment(const VariableLookup& lookup);

/// The rank that the variables of whichever launcher say; nothing for a process on its own. A
/// function of the variables alone.
///
/// Errors   kInvalidArgument, naming the variables, where some are missing, contradict each other or
///          have no meaning.
std::optional<RankEnvironment> read_ranks(const VariableLookup& lookup);

/// How a rank reaches the others, where a program knows by itself which one it is: host, interface
/// and transport alone.
///
/// Errors   those of `read_environment`.
RankEnvironment read_connections();
RankEnvironment read_connections(const VariableLookup& lookup);

/// `isa_limit` alone, for kernels in programs that read nothing else.
std::optional<Isa> read_isa_limit();

/// Errors   kInvalidArgument where both variables are set.
TokenEnvironment read_token(const VariableLookup& lookup);

/// The first host of a list as Slurm writes it: `rack[03-05,09]-a,login` -> `rack03-a`.
///
/// Errors   kInvalidArgument where it is none.
std::string first_host(const std::string& list);

}  // namespace trireme
