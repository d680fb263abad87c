"""A run's metrics in the tools that practitioners have: TensorBoard, MLflow, MLPerf's logging lines.

`trireme report RUN --tensorboard FOLDER` reads the run's folder (`history.py`) and hands what it finds to writers,
one for each tool (`writer.py`). Their libraries are imported where one is asked for. Of a living run it goes on with
what comes (`command.py`).
"""
