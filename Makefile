# make mnist   the main job: a fresh virtual environment, the installation, the training: some minutes
# make test    the tests, in the same environment: 15 minutes or more
# make pictures   draw the pictures of the pages that show formulas and parts of the library
# ARGS are passed on, as in  make mnist ARGS="--smoke"  or  make test ARGS="--slow"

VENV = .venv
ARGS =

help:
	@sed -n 's/^# //p' Makefile

mnist: $(VENV)/installed
	$(VENV)/bin/python experiments/mnist_pca.py $(ARGS)

test: $(VENV)/installed-test
	$(VENV)/bin/python -m pytest -n auto --dist loadfile $(ARGS)

pictures: $(VENV)/installed
	$(VENV)/bin/python -m tools.pictures

$(VENV)/created:
	@for python in python3 python3.13 python3.12 python3.11 python3.14 python; do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "creating $(VENV) with $$($$python --version)"; \
			$$python -m venv "$(VENV)" && touch $@ && exit 0; \
			echo "error: $$python cannot make a virtual environment; install its venv package" >&2; exit 1; \
		fi; \
	done; \
	echo "error: minidp needs Python 3.11 or newer, and none was found on the PATH" >&2; exit 1

$(VENV)/installed: $(VENV)/created setup.cfg pyproject.toml
	@echo "installing minidp and what it needs into $(VENV): several hundred MB, a minute or two"
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[audit]'
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	@echo "installing what the tests need into $(VENV)"
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

.PHONY: help mnist test pictures
