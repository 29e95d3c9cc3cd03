"""What a result says of the machine and the code that made it."""
import subprocess


from minidp.run import record


def git(folder, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_git_commit(tmp_path):
    assert record.git_commit(tmp_path) is None
    assert record.git_commit(tmp_path / "missing") is None
    git(tmp_path, "init")
    (tmp_path / "inside").mkdir()
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "m")
    commit = record.git_commit(tmp_path)
    assert len(commit) == 40 and int(commit, 16)
    (tmp_path / "a").write_text("2")
    assert record.git_commit(tmp_path) == f"{commit}-dirty"
    assert record.git_commit(tmp_path / "inside") is None, "a repository around the checkout is not the checkout's"


def test_git_commit_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert record.git_commit() is None
