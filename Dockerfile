# docker build -t trireme . && docker run --rm -v "$PWD:/data" trireme --help
FROM debian:12-slim
COPY . /opt/trireme
WORKDIR /opt/trireme
# dev installs compiler and libraries, and torch into .venv, where the installed program finds it.
RUN ./dev build trireme \
  && .venv/bin/uv pip install -q --python .venv/bin/python --no-deps "$(grep ^pyarrow requirements-python.txt)" \
  && cmake -B build/dev -DTRIREME_TESTS=OFF \
  && cmake --build build/dev \
  && cmake --install build/dev --prefix /usr/local \
  && rm -rf build /root/.cache /var/lib/apt/lists/*
WORKDIR /data
ENTRYPOINT ["trireme"]
