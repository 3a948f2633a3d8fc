# The harness and every server, built, with the scripts that README.md describes.
#
#     docker build -t wsbench .
#     docker run --rm --init --ulimit nofile=1048576 wsbench ./script/benchmark.sh --profile smoke
#
# What a container changes in the numbers: README.md, "In a container".

FROM rust:1.95-slim-trixie AS build
# git: the records name the harness' revision. Of both, any version will do.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git procps \
    && rm -rf /var/lib/apt/lists/*
# Nothing here needs root: a soft limit may be raised to the hard one by anybody, and
# the hard one is set by whoever starts the container (--ulimit).
RUN useradd --create-home --uid 1000 bench
USER 1000
ENV CARGO_HOME=/home/bench/.cargo
WORKDIR /home/bench/wsbench
COPY --chown=bench:bench . .
RUN cargo build --release --locked -p wsbench \
    && target/release/wsbench build

# The client alone: what a second host needs to load a server.
#
#     docker build --target client -t wsbench-client .
FROM debian:trixie-slim AS client
RUN useradd --create-home --uid 1000 bench \
    && install --directory --owner=bench --group=bench \
        /home/bench/wsbench /home/bench/wsbench/frameworks /home/bench/wsbench/results
USER 1000
ENV WSBENCH_ROOT=/home/bench/wsbench
WORKDIR /home/bench/wsbench
COPY --from=build /home/bench/wsbench/profiles profiles
COPY --from=build /home/bench/wsbench/target/release/wsbench /usr/local/bin/wsbench
VOLUME /home/bench/wsbench/results
ENTRYPOINT ["wsbench"]
CMD ["client", "--help"]

FROM build AS bench
RUN mkdir -p results
VOLUME /home/bench/wsbench/results
CMD ["./script/benchmark.sh"]
