from ..examples import Examples as Examples
from ..examples import LabelledExamples as LabelledExamples
from .persons import Persons as Persons
