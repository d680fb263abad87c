"""The engine: include/trireme for Python."""

import collections.abc
import os
import pathlib
from typing import overload

import torch

class Balance:
    PARAMETERS: Balance
    SEARCH: Balance
    TREE: Balance
    UNIFORM: Balance

    @property
    def name(self) -> str: ...

class BatchLayout:
    """How a step's samples are cut up: global_batch over all ranks, microbatch of one run of a stage,
    lanes in which gradients are summed (docs/concepts/equality.md)."""

    global_batch: int
    lanes: int
    microbatch: int

    def __init__(self, global_batch: int, microbatch: int, lanes: int = ...) -> None: ...
    @property
    def num_microbatches(self) -> int: ...

class BatchSizes:
    ANY: BatchSizes
    ANY_ELSE_EXACT: BatchSizes
    EXACT: BatchSizes

    @property
    def name(self) -> str: ...

class ChangedStep:
    """A step in which one thing is changed."""

    @property
    def change(self) -> str: ...
    @property
    def peak_bytes(self) -> int:
        """Of the fullest rank."""

    @property
    def step_ms(self) -> float: ...
    @property
    def us_per_sample(self) -> float: ...

class ChangedSteps:
    """A step as it is now, and changed, the fastest first; text for people."""

    @property
    def changes(self) -> list[ChangedStep]: ...
    @property
    def now(self) -> ChangedStep: ...
    @property
    def text(self) -> str: ...

class CheckpointErrors:
    CONTINUE: CheckpointErrors
    STOP: CheckpointErrors

    @property
    def name(self) -> str: ...

class CheckpointWrites:
    AUTO: CheckpointWrites
    BESIDE: CheckpointWrites
    WAIT: CheckpointWrites

    @property
    def name(self) -> str: ...

class Comparison:
    """One training beside another of the same steps: bit-equal or not, the largest differences."""

    @property
    def against(self) -> str: ...
    @property
    def first_difference(self) -> str: ...
    @property
    def is_bitwise(self) -> bool: ...
    @property
    def passes(self) -> bool: ...
    @property
    def worst_gradient(self) -> float: ...
    @property
    def worst_loss(self) -> float: ...
    @property
    def worst_weight(self) -> float: ...

class Evaluated:
    """What an evaluation found."""

    @property
    def losses(self) -> StepLosses: ...
    @property
    def microbatch_sums(self) -> list[list[float]]: ...

class Feed(Source):
    def __init__(
        self,
        first: collections.abc.Sequence[tuple[str, torch.Tensor]],
        replicas: int,
        replica: int,
        any_size: bool = ...,
    ) -> None: ...
    def close(self) -> None: ...
    def push(self, step: int, rows: collections.abc.Sequence[tuple[str, torch.Tensor]]) -> None: ...

class Front:
    """Plans of which none is beaten in both step and peak, the fastest first; text for people."""

    @property
    def plans(self) -> list[Plan]: ...
    @property
    def text(self) -> str: ...

class GradientDtype:
    BF16: GradientDtype
    F32: GradientDtype

    @property
    def name(self) -> str: ...

class Graph:
    """A recorded forward pass; its form does not say how it is split."""

    @staticmethod
    def load(path: os.PathLike[str] | str) -> Graph: ...
    def save(self, path: os.PathLike[str] | str) -> str: ...
    def show(self) -> str:
        """Its nodes for people, in the order in which they run."""

    @property
    def allowed_cuts(self) -> list[int]:
        """Nodes that a stage may begin with."""

    @property
    def first_uses(self) -> list[int]:
        """By parameter, the first node that reads it."""

    @property
    def microbatch(self) -> int:
        """Samples of the microbatch that it was recorded with."""

    @property
    def node_names(self) -> list[str]:
        """In the order in which they run; cuts are given by them."""

    @property
    def parameter_names(self) -> list[str]: ...
    @property
    def sha256(self) -> str:
        """Profiles and plans say of which graph they are."""

class Loss:
    @property
    def coefficient(self) -> float: ...
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> torch.Tensor: ...
    @property
    def weight(self) -> object: ...

class LossTotal:
    """One loss over a step or an evaluation; its mean is sum / weight."""

    @property
    def coefficient(self) -> float: ...
    @property
    def mean(self) -> float: ...
    @property
    def name(self) -> str: ...
    @property
    def sum(self) -> float: ...
    @property
    def weight(self) -> float: ...

class Measured:
    """What training took, on rank 0; lists are by rank."""

    @property
    def data_wait_fraction(self) -> float: ...
    @property
    def median_step_ms(self) -> float: ...
    @property
    def peak_bytes(self) -> list[int]: ...
    @property
    def resident_peak_bytes(self) -> list[int]: ...

class Model:
    recorded_by_all: bool

    def __init__(
        self,
        parameters: collections.abc.Sequence[tuple[str, torch.Tensor]],
        buffers: collections.abc.Sequence[tuple[str, torch.Tensor]],
        forward: object,
        set_training: object,
        set_traced: object,
        scalars: collections.abc.Sequence[tuple[str, object]],
    ) -> None: ...

class Objective:
    COST: Objective
    MEMORY: Objective
    SPEED: Objective

    @property
    def name(self) -> str: ...

class Offload:
    ALL: Offload
    AUTO: Offload
    NONE: Offload

    @property
    def name(self) -> str: ...

class Opaque:
    def __init__(
        self,
        name: str,
        function: object,
        parameters: collections.abc.Sequence[tuple[str, torch.Tensor]],
        buffers: collections.abc.Sequence[tuple[str, torch.Tensor]],
    ) -> None: ...
    def __call__(self, inputs: collections.abc.Sequence[torch.Tensor]) -> list[torch.Tensor]: ...

class OptimizerOptions:
    """name: sgd, adamw, ... or own; weight_decay outside the gradient; clip_norm 0: none."""

    average_decay: float
    beta1: float | None
    beta2: float | None
    clip_norm: float
    decay: str
    decay_power: float
    decay_steps: int
    epsilon: float | None
    final_rate: float
    groups: list[ParameterGroup]
    hold_steps: int
    learning_rate: float
    momentum: float
    name: str
    rate_schedule: collections.abc.Callable[[int], float]
    turns: list[Turn]
    warmup_steps: int
    weight_decay: float

    def __init__(self) -> None: ...

class ParameterGroup:
    """Parameters with names like a pattern: a weight decay of their own, a scale of the rate."""

    learning_rate_scale: float
    names: str
    weight_decay: float | None

    def __init__(
        self, names: str, weight_decay: float | None = ..., learning_rate_scale: float = ...
    ) -> None: ...

class Placement:
    CLUSTER: Placement
    SPREAD: Placement

    @property
    def name(self) -> str: ...

class Plan:
    """Stages, replicas and the schedule of a training."""

    @overload
    @staticmethod
    def load(path: os.PathLike[str] | str) -> Plan: ...
    @overload
    @staticmethod
    def load(path: os.PathLike[str] | str, graph: Graph) -> Plan: ...
    def save(self, path: os.PathLike[str] | str) -> str: ...
    def show(self, graph: Graph) -> str:
        """A table for people: stages and what they hold."""

    @property
    def batch(self) -> BatchLayout: ...
    @property
    def graph_sha256(self) -> str: ...
    @property
    def num_ranks(self) -> int: ...
    @property
    def num_replicas(self) -> int: ...
    @property
    def num_stages(self) -> int: ...
    @property
    def prediction(self) -> Prediction | None:
        """None where nothing was measured."""

    @property
    def schedule(self) -> str: ...
    @property
    def stage_begins(self) -> list[int]:
        """The first node of each stage."""

class PlanOptions:
    """Stages and replicas (0: as many as are best), cuts by node name, the objective."""

    active_microbatches: int
    balance: Balance
    batch: BatchLayout
    copies: list[str]
    cuts: list[str]
    device_memory_bytes: int
    max_slowdown: float
    may_copy: bool
    may_idle: bool
    may_join: bool
    may_reorder: bool
    objective: Objective
    offload: Offload
    placement: Placement
    recompute: Recompute
    replicas: int
    schedule: str
    schedule_file: pathlib.Path
    shard_parameters: bool
    shard_state: bool
    stage_of: dict[str, int]
    stages: int
    stages_per_rank: int
    threads: int

    def __init__(self) -> None: ...

class Prediction:
    """What a plan's step is expected to take."""

    @property
    def limits(self) -> list[str]: ...
    @property
    def lower_bound_ms(self) -> float: ...
    @property
    def peak_bytes(self) -> list[dict[str, int]]: ...
    @property
    def step_ms(self) -> float: ...

class Profile:
    """What the nodes of a graph cost on a machine."""

    @overload
    @staticmethod
    def load(path: os.PathLike[str] | str) -> Profile: ...
    @overload
    @staticmethod
    def load(path: os.PathLike[str] | str, graph: Graph) -> Profile: ...
    def save(self, path: os.PathLike[str] | str) -> str: ...
    def show(self, graph: Graph) -> str:
        """A table for people: nodes by cost."""

    @property
    def backward_ms(self) -> float:
        """Of a microbatch, all nodes."""

    @property
    def forward_ms(self) -> float:
        """Of a microbatch, all nodes."""

    @property
    def graph_sha256(self) -> str: ...
    @property
    def microbatch(self) -> int: ...

class Recompute:
    ALL: Recompute
    AUTO: Recompute
    NONE: Recompute
    REGIONS: Recompute

    @property
    def name(self) -> str: ...

class RecordSource:
    """Records of files by index; their fields are bytes."""

    def fields(self, index: int) -> list[str]: ...
    def name(self, index: int) -> str: ...
    def read(self, index: int, field: str) -> bytes: ...
    @property
    def identity(self) -> str: ...
    @property
    def num_records(self) -> int: ...

class RecordedForward: ...

class Reduction:
    AVERAGE: Reduction
    MAX: Reduction
    MIN: Reduction
    SUM: Reduction

    @property
    def name(self) -> str: ...

class ReplicaPolicy:
    AVERAGE: ReplicaPolicy
    FIRST: ReplicaPolicy
    SUM: ReplicaPolicy

    @property
    def name(self) -> str: ...

class RunOptions:
    """The folder that a run is kept in, and how often checkpoints and evaluations come, in steps."""

    best_by: str
    best_is_most: bool
    checkpoint_errors: CheckpointErrors
    checkpoint_every: int
    checkpoint_writes: CheckpointWrites
    evaluate_every: int
    evaluates_elsewhere: bool
    folder: str
    keep_best: int
    keep_last: int
    patience: int
    resume: bool
    target: float | None

    def __init__(self) -> None: ...

class Session:
    def __init__(self, world: World, make: object, options: SessionOptions) -> None: ...
    def backward(self) -> StepReport: ...
    def evaluate(self) -> StepLosses: ...
    def evaluate_recorded(self, recorded: RecordedForward) -> Evaluated: ...
    def finish(self) -> SessionEnd: ...
    def follow(self, run: str) -> int: ...
    def gradients(self) -> dict[str, torch.Tensor]: ...
    def record_evaluation(self, make: object) -> RecordedForward: ...
    def request_save(self) -> None: ...
    def request_stop(self) -> None: ...
    def resume(self, checkpoint: str) -> None: ...
    def run(self) -> SessionEnd: ...
    def run_step(self) -> StepReport: ...
    def save(self) -> None: ...
    def save_timeline(self, path: str) -> None: ...
    def save_weights(self, path: str) -> None: ...
    def step(self) -> StepReport: ...
    def update(self) -> None: ...
    def weights(self) -> dict[str, torch.Tensor]: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def is_reader(self) -> bool: ...
    @property
    def next_step(self) -> int: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def resumed_from(self) -> int | None: ...
    @property
    def stops(self) -> bool: ...

class SessionEnd:
    """How a training has ended: steps done, what stopped it early, the last checkpoint's folder, the last
    evaluation."""

    @property
    def best_checkpoint(self) -> str: ...
    @property
    def checkpoint(self) -> str: ...
    @property
    def evaluation(self) -> StepLosses | None: ...
    @property
    def measured(self) -> Measured: ...
    @property
    def steps_done(self) -> int: ...
    @property
    def stopped_by(self) -> str: ...

class SessionOptions:
    """The same on every rank, but for callbacks, which rank 0 is told by."""

    batch_sizes: BatchSizes
    deferred_init: bool
    first_step_check: bool
    handles_signals: bool
    measures: bool
    metrics_file: str
    model: str
    num_steps: int | None
    on_checkpoint: collections.abc.Callable[..., object] | None
    on_evaluation: collections.abc.Callable[..., object] | None
    on_phase: collections.abc.Callable[..., object] | None
    on_step: collections.abc.Callable[..., object] | None
    plan: Plan | None
    planning: PlanOptions
    profile: str
    reader_ranks: int
    run: RunOptions
    serial: bool
    topology: str
    training: TrainingOptions

    def __init__(self) -> None: ...

class SimulatedStep:
    """A step of a plan by the simulator: milliseconds, of each rank busy_ms, bytes of the fullest rank, a
    timeline as a Chrome trace, text for people."""

    @property
    def busy_ms(self) -> list[float]: ...
    @property
    def lower_bound_ms(self) -> float: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def step_ms(self) -> float: ...
    @property
    def text(self) -> str: ...
    @property
    def timeline(self) -> str: ...

class Source:
    @property
    def num_samples(self) -> int: ...
    @property
    def reading(self) -> str: ...

class StepLosses:
    """Losses of a step or an evaluation; total is what is minimised."""

    @property
    def losses(self) -> list[LossTotal]: ...
    @property
    def total(self) -> float: ...

class StepReport:
    """What one step was: its number from 0, losses, the gradient's norm before clipping (0 where no step
    needs it), seconds, of them those that waited for samples, and processor time of this rank's stages."""

    @property
    def compute_seconds(self) -> float: ...
    @property
    def data_wait_seconds(self) -> float: ...
    @property
    def gradient_norm(self) -> float: ...
    @property
    def is_skipped(self) -> bool: ...
    @property
    def loss(self) -> float: ...
    @property
    def loss_scale(self) -> float: ...
    @property
    def losses(self) -> StepLosses: ...
    @property
    def microbatch_sums(self) -> list[list[float]]: ...
    @property
    def seconds(self) -> float: ...
    @property
    def step(self) -> int: ...

class Topology:
    """Ranks, their memory, and the links between them."""

    @staticmethod
    def load(path: os.PathLike[str] | str) -> Topology: ...
    def memory_bytes(self, rank: int) -> int: ...
    def save(self, path: os.PathLike[str] | str) -> str: ...
    def show(self) -> str: ...
    @property
    def num_ranks(self) -> int: ...

class TrainingOptions:
    """seed of random numbers and of the order of samples; buffers: what replicas do with theirs."""

    allow_nonfinite: bool
    buffers: dict[str, ReplicaPolicy]
    capture: bool
    drift_check_steps: list[int]
    evaluate_average: bool
    gradient_dtype: GradientDtype
    loss_scale: float
    loss_scale_steps: int
    offload_folder: pathlib.Path
    optimizer: OptimizerOptions
    reader_threads: int
    seed: int
    shuffled: bool
    tolerant: bool

    def __init__(self) -> None: ...

class Turn:
    """Steps in which losses of these names count and parameters with names like these patterns move."""

    losses: list[str]
    num_steps: int
    parameters: list[str]

    def __init__(
        self,
        parameters: collections.abc.Sequence[str],
        losses: collections.abc.Sequence[str],
        num_steps: int = ...,
    ) -> None: ...

class Verification:
    """A plan's training beside the uncut model, a plain loop and the stages in one process."""

    @property
    def comparisons(self) -> list[Comparison]: ...
    @property
    def passes(self) -> bool: ...
    @property
    def plan(self) -> Plan: ...

class Workload:
    def __init__(
        self, model: Model, training: Source, evaluation: Source | None = ..., metrics: object = ...
    ) -> None: ...

class World:
    """The ranks of a run, and collectives on dense tensors."""

    def __init__(self, timeout_s: int = ...) -> None: ...
    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """Every rank's tensor, in the order of ranks."""

    def all_reduce(self, tensor: torch.Tensor, by: Reduction = ...) -> None:
        """In place; the same bits on all ranks."""

    def barrier(self) -> None:
        """Waits for all ranks."""

    def broadcast(self, tensor: torch.Tensor, root: int = ...) -> None:
        """In place."""

    def fail(self, why: str) -> None:
        """Ends the run on all ranks, with this reason."""

    def shutdown(self) -> None:
        """Leaves once all ranks do."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...

def best_plan(
    graph: Graph,
    profile: Profile,
    topology: Topology,
    options: PlanOptions,
    training: TrainingOptions,
) -> tuple[Plan, str]: ...
def explain_step(
    plan: Plan,
    graph: Graph,
    profile: Profile,
    topology: Topology,
    training: TrainingOptions,
    timeline: os.PathLike[str] | str = ...,
) -> ChangedSteps: ...
def is_rank() -> bool: ...
def make_front(
    graph: Graph,
    profile: Profile,
    topology: Topology,
    options: PlanOptions,
    training: TrainingOptions,
) -> Front: ...
def make_plan(graph: Graph, options: PlanOptions) -> Plan: ...
def mean_loss(mean: torch.Tensor, name: str = ..., coefficient: float = ...) -> Loss: ...
def measure_model(
    world: World,
    make: object,
    microbatch: int,
    training: TrainingOptions,
    device_memory_bytes: int = ...,
    threads: int = ...,
) -> tuple[Profile, Topology]: ...
def mixed_source(
    parts: collections.abc.Sequence[tuple[Source, int]], seed: int, shuffled: bool, num_samples: int
) -> Source: ...
def open_fixed_records(
    paths: collections.abc.Sequence[os.PathLike[str] | str],
    fields: collections.abc.Sequence[tuple[str, torch.dtype, collections.abc.Sequence[int]]],
    header_bytes: int,
    access: str,
    num_in_flight: int,
    ahead_bytes: int,
) -> Source: ...
def open_records(
    paths: collections.abc.Sequence[os.PathLike[str] | str],
    form: str,
    suffixes: collections.abc.Sequence[str],
    classes: collections.abc.Sequence[str],
    columns: collections.abc.Sequence[str],
    separator: str | None,
    has_quotes: bool,
    unpack_folder: os.PathLike[str] | str,
    unpack_max_bytes: int,
    cache_bytes: int,
) -> RecordSource: ...
def output(values: torch.Tensor, name: str) -> Loss: ...
def packed_source(
    source: Source, row: collections.abc.Mapping[str, int], max_segments: int, open_rows: int
) -> Source: ...
def python_source(
    num_samples: int,
    first: collections.abc.Sequence[tuple[str, torch.Tensor]],
    read: object,
    identity: str,
    padded: collections.abc.Sequence[collections.abc.Mapping[str, int]],
    dimensions: collections.abc.Mapping[str, collections.abc.Mapping[int, str]],
    padding: collections.abc.Mapping[str, float],
    lengths_of: object,
) -> Source: ...
def record_graph(
    make: object, microbatch: int, training: bool = ..., seed: int = ..., sizes: BatchSizes = ...
) -> Graph: ...
def repeated_source(source: Source, times: int, block_samples: int) -> Source: ...
def sample_of(source: Source, index: int, visit: int) -> list[tuple[str, torch.Tensor]]: ...
def simulate_step(
    plan: Plan, graph: Graph, profile: Profile, topology: Topology, training: TrainingOptions
) -> SimulatedStep: ...
def skip_damaged(
    source: Source, max_skipped: int, quarantine: os.PathLike[str] | str
) -> Source: ...
def start_ranks(command: collections.abc.Sequence[str], ranks: int) -> int: ...
def sum_loss(
    sum: torch.Tensor, weight: torch.Tensor, name: str = ..., coefficient: float = ...
) -> Loss: ...
def tensor_source(fields: collections.abc.Sequence[tuple[str, torch.Tensor]]) -> Source: ...
def verify_training(
    world: World, make: object, steps: int, seed: int, options: SessionOptions
) -> Verification: ...
