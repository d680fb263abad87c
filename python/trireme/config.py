"""The configuration table of `trireme.init`: the keys that users of model-parallel libraries know.

Every key works, or is refused with the reason and the nearest thing that does. docs/guides lists them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Config:
    """How a model is split, from the table of keys."""

    stages: int = 1
    microbatches: int = 1
    schedule: str = "interleaved"
    active_microbatches: int = 0  # as many as the schedule has
    objective: str = "speed"
    placement: str = "cluster"
    auto_partition: bool = True
    default_partition: int = 0
    partition_file: str = ""
    load_partition: bool = False
    precision: str = "f32"
    offload: str = "none"


class ConfigError(ValueError):
    """A key that means nothing here, or a value that it cannot have."""


def _count(key: str, value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{key} is a whole number of {least} or more, and is {value!r}")
    return value


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{key} is True or False, and is {value!r}")
    return value


def _one_of(key: str, value: Any, words: Mapping[str, str]) -> str:
    if value not in words:
        raise ConfigError(f"{key} is one of {', '.join(words)}, and is {value!r}")
    return words[value]


# Of the letters D, P and T the right-most varies fastest over ranks; tensors are in one shard.
_PLACEMENTS = {
    "cluster": "cluster",
    "spread": "spread",
    **dict.fromkeys(("DPT", "DTP", "TDP"), "cluster"),
    **dict.fromkeys(("PDT", "PTD", "TPD"), "spread"),
}

# key: the field of Config it sets, and its value there
_KEYS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "pipeline_parallel_degree": ("stages", _count),
    "partitions": ("stages", _count),
    "microbatches": ("microbatches", _count),
    "pipeline": (
        "schedule",
        lambda k, v: _one_of(
            k,
            v,
            {word: word for word in ("simple", "interleaved", "zero_bubble", "zero_bubble_h2")},
        ),
    ),
    "active_microbatches": ("active_microbatches", _count),
    "optimize": ("objective", lambda k, v: _one_of(k, v, {"speed": "speed", "memory": "memory"})),
    "placement_strategy": ("placement", lambda k, v: _one_of(k, v, _PLACEMENTS)),
    "auto_partition": ("auto_partition", _flag),
    "default_partition": ("default_partition", lambda k, v: _count(k, v, 0)),
    "partition_file": ("partition_file", lambda _, v: str(v)),
    "load_partition": ("load_partition", _flag),
    "bf16": ("precision", lambda k, v: "bf16" if _flag(k, v) else "f32"),
    "offload_activations": ("offload", lambda k, v: "all" if _flag(k, v) else "none"),
}

# Keys that choose what is so here anyway: any of these values says nothing new.
_ALWAYS: dict[str, tuple[tuple[Any, ...], str]] = {
    "ddp": (
        (True,),
        "ranks beyond the stages are replicas, always; without them start fewer ranks",
    ),
    "ddp_dist_backend": (("auto",), "sums over replicas go by Trireme's own collectives"),
    "deterministic_server": ((True, False), "the order is always the same"),
    "contiguous": ((True,), "stages are contiguous ranges of the recorded graph"),
    "horovod": ((False,), "replicas are Trireme's own"),
    "tensor_parallel_degree": ((1,), "tensors are not sharded; use pipeline_parallel_degree"),
    "shard_optimizer_state": (
        (False,),
        "the optimizer is torch's own; trireme.Session(shard_state=True) shares its own",
    ),
    "prescaled_batch": ((False,), "it is about tensor parallelism"),
    "fp16": (
        (False,),
        "losses are not scaled here; take bf16, or trireme.Session(precision='f16')",
    ),
    "fp16_params": ((False,), "parameters stay in float32; take bf16"),
    "skip_tracing": ((False,), "the recording is what is split; it takes milliseconds"),
    "delayed_parameter_initialization": (
        (False,),
        "the model is made whole on every rank; make it on torch's meta device is not here yet",
    ),
    "sharded_data_parallel_degree": (
        (1,),
        "the optimizer is torch's own; trireme.Session(shard_parameters=True) shards",
    ),
    "static_mode": ((True,), "the order of a step is fixed before it runs"),
    "fast_mode": ((True,), "values go from stage to stage directly"),
}

# Keys of things that are refused above: they have nothing to set.
_WITHOUT_EFFECT = {
    "ddp_port": "ranks meet where the launcher says (MASTER_ADDR, MASTER_PORT)",
    "activation_loading_horizon": "what is offloaded is asked for two forwards or backwards ahead",
    "sdp_reduce_bucket_size": "parameters are not sharded",
    "sdp_param_persistence_threshold": "parameters are not sharded",
    "sdp_max_live_parameters": "parameters are not sharded",
    "sdp_hierarchical_allgather": "parameters are not sharded",
    "sdp_gradient_clipping": "parameters are not sharded; clip by DistributedModel.clip_grad_norm_",
}


def parse(config: Mapping[str, Any]) -> Config:
    """The Config of a table of keys. ConfigError names the key, why it is refused, and what to use."""
    fields: dict[str, Any] = {}
    for key, value in config.items():
        if key in _KEYS:
            field, read = _KEYS[key]
            if field in fields:
                raise ConfigError(f"{key} says again what another key has said; keep one of them")
            fields[field] = read(key, value)
        elif key in _ALWAYS:
            values, why = _ALWAYS[key]
            if value not in values:
                raise ConfigError(f"{key}={value!r} is not available: {why}")
        elif key in _WITHOUT_EFFECT:
            raise ConfigError(f"{key} would have no effect: {_WITHOUT_EFFECT[key]}; leave it out")
        elif key != "memory_weight":
            raise ConfigError(f"no key is called {key!r}; there are {', '.join(known_keys())}")
    result = Config(**fields)
    _check_active(result)
    _check_weight(result, config.get("memory_weight"))
    _check_partition(result)
    return result


def known_keys() -> list[str]:
    return sorted([*_KEYS, *_ALWAYS, "memory_weight"])


def _check_active(config: Config) -> None:
    if config.schedule != "simple" or config.active_microbatches == 0:
        return
    if config.active_microbatches < config.microbatches:
        raise ConfigError(
            f"active_microbatches={config.active_microbatches} is less than the {config.microbatches} that "
            "pipeline='simple' holds, which runs all forwards first; take pipeline='interleaved', or leave it out"
        )


def _check_weight(config: Config, weight: Any) -> None:
    if weight is None:
        return
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight <= 1:
        raise ConfigError(f"memory_weight is a number from 0 to 1, and is {weight!r}")
    if (weight > 0.5) != (config.objective == "memory"):
        raise ConfigError(
            f"memory_weight={weight} with optimize={config.objective!r}: memory is a limit or the objective here, "
            "not a weight; say optimize='memory' for least memory, 'speed' for the fastest step"
        )


def _check_partition(config: Config) -> None:
    if config.default_partition >= config.stages:
        raise ConfigError(
            f"default_partition={config.default_partition} is none of the {config.stages} partitions"
        )
    if config.load_partition and not config.partition_file:
        raise ConfigError("load_partition=True needs partition_file: the plan's file")
