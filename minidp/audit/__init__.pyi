from .layer import check_layer as check_layer
from .layer import check_loss as check_loss
from .report import page as page
