// Which rank each launcher's variables say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/base/error_of.h"
#include "trireme/base/environment.h"
#include "trireme/error.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using Settings = std::map<std::string, std::string>;

std::optional<RankEnvironment> ranks_of(const Settings& settings) {
  return read_ranks([&](const std::string& name) -> std::optional<std::string> {
    const auto found = settings.find(name);
    if (found == settings.end()) return std::nullopt;
    return found->second;
  });
}

std::string refusal_of(const Settings& settings) {
  try {
    const auto ranks = ranks_of(settings);
    return ranks ? "accepted" : "no rank";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
}

Settings plus(Settings settings, const Settings& more) {
  for (const auto& [name, value] : more) settings[name] = value;
  return settings;
}

Settings mpirun() {
  return {{"OMPI_COMM_WORLD_RANK", "1"},
          {"OMPI_COMM_WORLD_SIZE", "4"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
          {"PMIX_RANK", "1"},
          {"PMIX_NAMESPACE", "486539265"}};
}

Settings srun() {
  return {{"SLURM_PROCID", "3"},
          {"SLURM_NTASKS", "8"},
          {"SLURM_STEP_ID", "2"},
          {"SLURM_JOB_ID", "123456"},
          {"SLURM_NODELIST", "gpu[07-10],cpu3"}};
}

Settings mpich() {
  return {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}, {"PMI_JOBID", "kvs_77"}};
}

Settings pod() {
  return {{"PET_NODE_RANK", "1"},
          {"PET_NNODES", "3"},
          {"PET_NPROC_PER_NODE", "1"},
          {"PET_MASTER_ADDR", "job-0.job"},
          {"PET_MASTER_PORT", "29500"}};
}

Settings indexed() {
  return {{"JOB_COMPLETION_INDEX", "2"},
          {"JOBSET_NAME", "mine"},
          {"WORLD_SIZE", "4"},
          {"MASTER_ADDR", "mine-0.mine"},
          {"MASTER_PORT", "29400"}};
}

struct Case {
  Settings settings;
  Launcher launcher;
  int rank;
  int world_size;
  std::string store_host;
  int store_port;
  std::string job_id;
};

TEST(Launchers, EachSaysRankSizeAndStore) {
  const Settings store = {{"TRIREME_STORE", "10.0.0.7:4000"}};
  const std::vector<Case> cases = {
      {mpirun(), Launcher::kOpenMpi, 1, 4, "", 0, "486539265"},
      {plus(mpirun(), store), Launcher::kOpenMpi, 1, 4, "10.0.0.7", 4000, "486539265"},
      {plus(mpirun(), {{"PMIX_NAMESPACE", ""}, {"OMPI_MCA_ess_base_jobid", "9"}}),
       Launcher::kOpenMpi, 1, 4, "", 0, "9"},
      {plus(mpirun(), {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"TRIREME_STORE", "[::1]:5"}}),
       Launcher::kOpenMpi, 1, 4, "::1", 5, "486539265"},
      {mpich(), Launcher::kMpich, 1, 2, "", 0, "kvs_77"},
      {plus(mpich(), plus(store, {{"PMI_JOBID", ""}})), Launcher::kMpich, 1, 2, "10.0.0.7", 4000,
       ""},
      {srun(), Launcher::kSlurm, 3, 8, "gpu07", 20'000 + (3456 * 31 + 2) % 12'000, "123456.2"},
      {plus(srun(), store), Launcher::kSlurm, 3, 8, "10.0.0.7", 4000, "123456.2"},
      {plus(srun(), {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_NODELIST", "b9"}}),
       Launcher::kSlurm, 3, 4, "b9", 20'000 + (3456 * 31 + 2) % 12'000, "123456.2"},
      // srun --mpi=pmi2; MPICH's mpiexec within a step.
      {plus(srun(), {{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}, {"PMI_JOBID", "123456.2"}}),
       Launcher::kSlurm, 3, 8, "gpu07", 20'000 + (3456 * 31 + 2) % 12'000, "123456.2"},
      {plus(srun(), mpich()), Launcher::kMpich, 1, 2, "", 0, "kvs_77"},
      {pod(), Launcher::kKubernetes, 1, 3, "job-0.job", 29'500, ""},
      {indexed(), Launcher::kKubernetes, 2, 4, "mine-0.mine", 29'400, "mine"},
      // The one that was started last counts.
      {plus(srun(), mpirun()), Launcher::kOpenMpi, 1, 4, "", 0, "486539265"},
      {plus(srun(),
            {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}),
       Launcher::kOther, 0, 2, "a", 1, ""},
      {plus(store, {{"RANK", "0"}, {"WORLD_SIZE", "2"}}), Launcher::kOther, 0, 2, "10.0.0.7", 4000,
       ""},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& expected = cases[i];
    const auto ranks = ranks_of(expected.settings);
    ASSERT_TRUE(ranks.has_value()) << i;
    EXPECT_EQ(ranks->launcher, expected.launcher) << i;
    EXPECT_EQ(ranks->rank, expected.rank) << i;
    EXPECT_EQ(ranks->world_size, expected.world_size) << i;
    EXPECT_EQ(ranks->store_host, expected.store_host) << i;
    EXPECT_EQ(ranks->store_port, expected.store_port) << i;
    EXPECT_EQ(ranks->job_id, expected.job_id) << i;
  }
}

TEST(Launchers, OneProcessIsNoRank) {
  Settings batch_script = srun();
  batch_script.erase("SLURM_STEP_ID");
  EXPECT_FALSE(ranks_of(batch_script));
  EXPECT_FALSE(ranks_of({{"JOB_COMPLETION_INDEX", "3"}}));
  EXPECT_FALSE(ranks_of({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
  EXPECT_FALSE(ranks_of(plus(srun(), {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}})));
}

TEST(Launchers, WhatIsMissingIsNamed) {
  for (const Settings& all : {mpirun(), mpich(), srun(), pod(), indexed()}) {
    int num_refused = 0;
    for (const auto& [name, value] : all) {
      const std::string text = refusal_of(plus(all, {{name, ""}}));
      if (text == "accepted" || text == "no rank") continue;
      ++num_refused;
      const bool is_of_store = text.find("TRIREME_STORE is not set") != std::string::npos;
      EXPECT_TRUE(is_of_store || text.find(name) != std::string::npos) << name << ": " << text;
    }
    EXPECT_GE(num_refused, 2);
  }
  EXPECT_THAT(refusal_of(plus(mpirun(), {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}})),
              HasSubstr("ranks are on several hosts; set it on all ranks to HOST:PORT"));
  EXPECT_THAT(refusal_of(plus(mpich(), {{"PMI_JOBID", ""}})), HasSubstr("nor which job this is"));
}

TEST(Launchers, ContradictionsAreNamed) {
  EXPECT_THAT(refusal_of(plus(mpirun(), {{"RANK", "0"}, {"WORLD_SIZE", "2"}})),
              HasSubstr("RANK is 0 and OMPI_COMM_WORLD_RANK is 1"));
  EXPECT_THAT(refusal_of(plus(mpirun(), {{"PMI_RANK", "2"}})),
              HasSubstr("OMPI_COMM_WORLD_RANK is 1 and PMI_RANK is 2"));
  EXPECT_THAT(refusal_of(plus(srun(), {{"SLURM_PROCID", "8"}})),
              HasSubstr("SLURM_PROCID is 8, SLURM_NTASKS is 8; ranks count from 0"));
  EXPECT_THAT(refusal_of(plus(pod(), {{"PET_NPROC_PER_NODE", "4"}})), HasSubstr("by torchrun"));
  EXPECT_THAT(refusal_of(plus(indexed(), {{"TRIREME_TOKEN", "a"}, {"TRIREME_TOKEN_FILE", "b"}})),
              HasSubstr("TRIREME_TOKEN and TRIREME_TOKEN_FILE are both set"));
  EXPECT_THAT(refusal_of(plus(indexed(), {{"TRIREME_HOST", "a"}, {"TRIREME_INTERFACE", "b"}})),
              HasSubstr("TRIREME_HOST and TRIREME_INTERFACE are both set"));
  for (const char* text : {"host", "host:99999", "host:0", "[::1:4000"}) {
    EXPECT_THAT(refusal_of(plus(srun(), {{"TRIREME_STORE", text}})),
                HasSubstr("TRIREME_STORE: '" + std::string(text) + "' is no address"));
  }
  EXPECT_THAT(refusal_of(plus(pod(), {{"PET_MASTER_PORT", "0"}})),
              HasSubstr("'0' is no number from 1 to 65535"));
}

TEST(Launchers, TransportAndProviderSayHowMessagesMove) {
  struct Expected {
    Settings settings;
    bool shares_memory;
    std::optional<std::string> ofi_provider;
  };
  const std::string transport = "TRIREME_TRANSPORT";
  const std::string provider = "TRIREME_OFI_PROVIDER";
  const Expected cases[] = {
      {{}, true, std::nullopt},
      {{{provider, "efa"}}, true, "efa"},
      {{{transport, "auto"}, {provider, "verbs;ofi_rxm"}}, true, "verbs;ofi_rxm"},
      {{{transport, "tcp"}}, false, std::nullopt},
      {{{transport, "tcp"}, {provider, "efa"}}, false, std::nullopt},
      {{{transport, "ofi"}}, false, ""},
      {{{transport, "ofi"}, {provider, "tcp;ofi_rxm"}}, false, "tcp;ofi_rxm"},
  };
  for (const Expected& expected : cases) {
    const auto ranks = ranks_of(plus(srun(), expected.settings));
    ASSERT_TRUE(ranks.has_value());
    EXPECT_EQ(ranks->shares_memory, expected.shares_memory);
    EXPECT_EQ(ranks->ofi_provider, expected.ofi_provider);
  }
  EXPECT_THAT(refusal_of(plus(srun(), {{transport, "shm"}})),
              HasSubstr("TRIREME_TRANSPORT: 'shm' is none of auto, tcp and ofi"));
  EXPECT_THAT(refusal_of(plus(srun(), {{provider, "sockets"}})),
              HasSubstr("TRIREME_OFI_PROVIDER: 'sockets' is none of efa, verbs;ofi_rxm and"));
}

TEST(Launchers, ReadsListsOfHosts) {
  const std::map<std::string, std::string> hosts = {
      {"one", "one"},
      {"a,b", "a"},
      {"n[1-4]", "n1"},
      {"rack[03-05,09]-a,login", "rack03-a"},
      {"r[2,4]n[08-09]", "r2n08"},
      {"[7]", "7"},
  };
  for (const auto& [list, host] : hosts) EXPECT_EQ(first_host(list), host) << list;
  for (const char* list : {"", ",a", "n[1-4", "n[]", "n[x]", "n1]"}) {
    EXPECT_EQ(test::error_of([&] { first_host(list); }).kind(), ErrorKind::kInvalidArgument)
        << list;
  }
}

}  // namespace
}  // namespace trireme
